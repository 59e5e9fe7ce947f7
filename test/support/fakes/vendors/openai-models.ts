/** How the generations of OpenAI's models differ. https://platform.openai.com/docs/guides/reasoning */
export interface OpenAIModel {
  /** Values of the effort; none for models that do not reason. */
  readonly efforts: readonly string[];
  /** Where none is named. */
  readonly effort: string;
  /** Chat completions takes function tools only at effort `none`. */
  readonly toolsAtNone: boolean;
  /** How the refusal of tools ends. */
  readonly advice: string;
}

const high = ['low', 'medium', 'high'];
const xhigh = ['none', ...high, 'xhigh'];

export function modelOf(name: string): OpenAIModel {
  const [, major = '', minor = '0'] = /^gpt-(\d+)(?:\.(\d+))?/.exec(name) ?? [];
  const generation = Number(major) * 100 + Number(minor);
  const older = 'Please use /v1/responses instead.';
  if (/^o\d/.test(name)) return { efforts: high, effort: 'medium', toolsAtNone: false, advice: '' };
  if (generation < 500) return { efforts: [], effort: 'none', toolsAtNone: false, advice: '' };
  if (generation === 500) return { efforts: ['minimal', ...high], effort: 'medium', toolsAtNone: false, advice: '' };
  if (generation === 501) return { efforts: ['none', ...high], effort: 'none', toolsAtNone: false, advice: '' };
  if (generation < 505) return { efforts: xhigh, effort: 'none', toolsAtNone: true, advice: older };
  if (generation === 505) return { efforts: xhigh, effort: 'medium', toolsAtNone: true, advice: older };
  return { efforts: xhigh, effort: 'medium', toolsAtNone: true, advice: "To use function tools, use /v1/responses or set reasoning_effort to 'none'." };
}

/** The effort that holds. */
export const effortOf = (model: string, asked: unknown): string => (typeof asked === 'string' ? asked : modelOf(model).effort);

/** What the encrypted reasoning of a response begins with. */
export const sealed = 'gAAAAAB-sealed-by-openai-';
