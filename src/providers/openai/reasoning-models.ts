/** How one of OpenAI's models reasons. */
export interface ReasoningModel {
  /** The efforts that it accepts, from the lowest; none where it does not reason. */
  readonly efforts: readonly string[];
  /** It reasons where no effort is named. */
  readonly unasked: boolean;
}

const thinks = (...efforts: readonly string[]): ReasoningModel => ({ efforts, unasked: true });
const thinksIfAsked = (...efforts: readonly string[]): ReasoningModel => ({ efforts, unasked: false });

/** The first that fits counts. enricoros/big-AGI#1159, Kilo-Org/cloud#3807, QwenLM/qwen-code#11295, https://developers.openai.com/api/docs/guides/reasoning */
const models: readonly (readonly [name: RegExp, ReasoningModel | undefined])[] = [
  [/-chat\b|-codex\b|^o1-(?:mini|preview)/, undefined], // they differ from their families
  [/^(?:chatgpt-4|gpt-[34])/, { efforts: [], unasked: false }],
  [/^o\d/, thinks('low', 'medium', 'high')],
  [/^gpt-5-pro/, thinks('high')],
  [/^gpt-5(?:-|$)/, thinks('minimal', 'low', 'medium', 'high')],
  [/^gpt-5\.\d-pro/, thinks('medium', 'high', 'xhigh')],
  [/^gpt-5\.1(?:-|$)/, thinksIfAsked('none', 'low', 'medium', 'high')],
  [/^gpt-5\.[2-4](?:-|$)/, thinksIfAsked('none', 'low', 'medium', 'high', 'xhigh')],
  [/^gpt-5\.5(?:-|$)/, thinks('none', 'low', 'medium', 'high', 'xhigh')],
  [/^gpt-6(?:\.\d)?-astra/, thinks('low', 'medium', 'high', 'xhigh', 'max')],
  [/^gpt-(?:5\.[6-9]|6(?:\.\d)?)(?:-|$)/, thinks('none', 'low', 'medium', 'high', 'xhigh', 'max')],
];

/** Has a model, or its deployment, a name of the models that OpenAI itself serves? */
export const isNamedByOpenAI = (model: string): boolean => /^(?:(?:chat)?gpt(?!-?oss)|o\d(?:-|$)|codex)/i.test(model);

/** @param model name of a model or of its deployment. @returns undefined where it is not known to belong to a family */
export const reasoningOf = (model: string): ReasoningModel | undefined => models.find(([name]) => name.test(model))?.[1];
