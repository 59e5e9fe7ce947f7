import { isTranslated, type GenerateCall } from '#core/call';
import { type Fault, nothingAllowed } from '#core/fault';

/** The output token limit of a model (`limits.output` of the settings): agents send the same `max_tokens` to every model. */
export interface OutputLimit {
  /** The most output tokens that a request may ask for. Absent: unknown. */
  readonly maxOutputTokens?: number | undefined;
}

/** What refusals taught of it. */
export interface LearnedLimit extends OutputLimit {
  /** Output tokens for which the conversation of this call leaves room in the context. This is never remembered: other calls have other conversations. */
  readonly thisCall?: { readonly outputRoom?: number };
}

/** The smallest of what was learned and what is configured. */
export function outputLimit({ maxOutputTokens: learned, thisCall }: LearnedLimit, { maxOutputTokens }: OutputLimit): number | undefined {
  const most = Math.min(learned ?? Infinity, maxOutputTokens ?? Infinity, thisCall?.outputRoom ?? Infinity);
  return most === Infinity ? undefined : most;
}

/** Characters of a provider's message in which a limit is looked for. */
const mostRead = 300;
/** No model has a smaller one: what says so speaks of something else. */
const leastKnown = 256;

/**
 * The sentences in which providers tell it, from their beginning: behind that a message may repeat what some client wrote. OpenAI; OpenAI and Doubao
 * (Gitlawb/openclaude#331); Claude (olimorris/codecompanion.nvim#1028); Groq; DeepSeek and Qwen; Bedrock; vLLM.
 */
const sentences = [
  /^max_(?:completion_|output_)?tokens is too large: \d{1,10}\. This model supports at most ([\d,]{1,12}) completion tokens/,
  /^[^"{}]{0,60}\bmax_(?:completion_|output_)?tokens\b[^"{}]{0,60}: integer above maximum value[.,] [Ee]xpected a value <= ([\d,]{1,12})/,
  /^max_tokens: \d{1,10} > ([\d,]{1,12})/,
  /^[`'"]?max_(?:completion_|output_)?tokens[`'"]? must be less than or equal to [`'"]?([\d,]{1,12})/,
  /^[^"{}]{0,80}\b[Rr]ange of max_(?:completion_|output_)?tokens (?:is|should be) \[1, ?([\d,]{1,12})\]/,
  /^The maximum tokens you requested exceeds the model limit of ([\d,]{1,12})/,
  /^max_(?:completion_)?tokens=\d{1,10} cannot be greater than max_model_len=(?:max_total_tokens=)?([\d,]{1,12})/,
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
export function outputLimitLearned<Quirks extends LearnedLimit>({ details }: Fault, call: GenerateCall, known: Quirks, dialect: string): Quirks | undefined {
  const { maxOutputTokens, outputRoom, field = '' } = details;
  if (!isTranslated(call, dialect)) return undefined;
  const asked = call.sampling.maxTokens ?? Infinity;
  if (outputRoom !== undefined)
    return outputRoom < Math.min(asked, known.thisCall?.outputRoom ?? Infinity) ? { ...known, thisCall: { ...known.thisCall, outputRoom } } : undefined;
  if (maxOutputTokens === undefined || !/^(?:|.{0,40}tokens)$/i.test(field) || maxOutputTokens >= (known.maxOutputTokens ?? Infinity)) return undefined;
  return maxOutputTokens < asked ? { ...known, maxOutputTokens } : undefined;
}

/** What is known of the limit. */
interface KnownLimits {
  readonly quirks: LearnedLimit;
  readonly options: OutputLimit;
}

/**
 * Lowers the `max_tokens` of a call to the output limit of the model, with a warning.
 * @returns the same call where nothing has to change
 * @throws Fault `invalid` where no token may be generated and the client speaks another wire
 */
export function withinOutputLimit(call: GenerateCall, { quirks, options }: KnownLimits, dialect: string, ignored: Set<string>): GenerateCall {
  const { maxTokens } = call.sampling;
  if (maxTokens === 0 && isTranslated(call, dialect)) throw nothingAllowed();
  const most = outputLimit(quirks, options);
  if (most === undefined || maxTokens === undefined || maxTokens <= most || !isTranslated(call, dialect)) return call;
  const reason = most === quirks.thisCall?.outputRoom ? 'since the conversation fills the rest of the context' : 'the most that this model accepts';
  ignored.add(`max_tokens: lowered to ${most}, ${reason}.`);
  return { ...call, sampling: { ...call.sampling, maxTokens: most } };
}
