import { isTranslated, type GenerateCall } from '#core/call';
import { type Fault, nothingAllowed } from '#core/fault';

/** The output token limit of a model (`limits.output` of the settings): agents send the same `max_tokens` to every model. */
export interface OutputLimit {
  /** The most output tokens that a request may ask for. Absent: unknown. */
  readonly maxOutputTokens?: number | undefined;
}

/** The smaller of what was learned and what is configured. */
export const outputLimit = (quirks: OutputLimit, options: OutputLimit): number | undefined =>
  quirks.maxOutputTokens === undefined || options.maxOutputTokens === undefined
    ? (quirks.maxOutputTokens ?? options.maxOutputTokens)
    : Math.min(quirks.maxOutputTokens, options.maxOutputTokens);

/** Characters of a provider's message in which a limit is looked for. */
const mostRead = 300;
/** No model has a smaller one: what says so speaks of something else. */
const leastKnown = 256;

/**
 * The sentences in which providers tell it, from their beginning: behind that a message may repeat what some client wrote. OpenAI; OpenAI and Doubao
 * (Gitlawb/openclaude#331); Claude (olimorris/codecompanion.nvim#1028); Groq; DeepSeek and Qwen; Bedrock.
 */
const sentences = [
  /^max_(?:completion_|output_)?tokens is too large: \d{1,10}\. This model supports at most ([\d,]{1,12}) completion tokens/,
  /^[^"{}]{0,60}\bmax_(?:completion_|output_)?tokens\b[^"{}]{0,60}: integer above maximum value[.,] [Ee]xpected a value <= ([\d,]{1,12})/,
  /^max_tokens: \d{1,10} > ([\d,]{1,12})/,
  /^[`'"]?max_(?:completion_|output_)?tokens[`'"]? must be less than or equal to [`'"]?([\d,]{1,12})/,
  /^[^"{}]{0,80}\b[Rr]ange of max_(?:completion_|output_)?tokens (?:is|should be) \[1, ?([\d,]{1,12})\]/,
  /^The maximum tokens you requested exceeds the model limit of ([\d,]{1,12})/,
];
const exclusive =
  /^Unable to submit request because it has a maxOutputTokens value of \d{1,10} but the supported range is from 1 \(inclusive\) to (\d{1,10}) \(exclusive\)/;

/** Reads the output token limit of the model from a refusal. */
export function outputLimitIn(message: string): number | undefined {
  const text = message.slice(0, mostRead);
  const [, beyond] = exclusive.exec(text) ?? [];
  const [, most] = sentences.map((one) => one.exec(text)).find((found) => found !== null) ?? [];
  const found = beyond === undefined ? Number(most?.replaceAll(',', '')) : Number(beyond) - 1;
  return found >= leastKnown ? found : undefined;
}

/** What a refusal teaches of the limit; nothing where the client speaks the provider's wire, since its `max_tokens` is not changed. */
export function outputLimitLearned<Quirks extends OutputLimit>({ details }: Fault, call: GenerateCall, known: Quirks, dialect: string): Quirks | undefined {
  const { maxOutputTokens, field = '' } = details;
  if (
    maxOutputTokens === undefined ||
    !/^(?:|.{0,40}tokens)$/i.test(field) ||
    !isTranslated(call, dialect) ||
    maxOutputTokens >= (known.maxOutputTokens ?? Infinity)
  )
    return undefined;
  return maxOutputTokens < (call.sampling.maxTokens ?? Infinity) ? { ...known, maxOutputTokens } : undefined;
}

/**
 * Lowers the `max_tokens` of a call to the output limit of the model, with a warning.
 * @returns the same call where nothing has to change
 * @throws Fault `invalid` where no token may be generated and the client speaks another wire
 */
export function withinOutputLimit(call: GenerateCall, maxOutputTokens: number | undefined, dialect: string, ignored: Set<string>): GenerateCall {
  const { maxTokens } = call.sampling;
  if (maxTokens === 0 && isTranslated(call, dialect)) throw nothingAllowed();
  if (maxOutputTokens === undefined || maxTokens === undefined || maxTokens <= maxOutputTokens || !isTranslated(call, dialect)) return call;
  ignored.add(`max_tokens: lowered to ${maxOutputTokens}, the most that this model accepts.`);
  return { ...call, sampling: { ...call.sampling, maxTokens: maxOutputTokens } };
}
