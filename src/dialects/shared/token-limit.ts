import { isTranslated, type GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';

/** The output limit of a model: agents send the same `max_tokens` to every model. */
export interface LimitQuirks {
  /** The largest token limit of an answer that it accepts. Absent: unknown. */
  readonly mostTokens?: number | undefined;
}

/** The smaller of what was learned and what is configured. */
export const leastLimit = (quirks: LimitQuirks, options: LimitQuirks): number | undefined =>
  quirks.mostTokens === undefined || options.mostTokens === undefined
    ? (quirks.mostTokens ?? options.mostTokens)
    : Math.min(quirks.mostTokens, options.mostTokens);

/** Characters of a provider's message in which a limit is looked for. */
const mostRead = 600;

const aboutLimit = /max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens|maximum tokens|completion tokens|output tokens/;

/**
 * `max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.` (OpenAI), `integer above maximum value. Expected
 * a value <= 128000, but got 300000 instead.` (OpenAI, Doubao: Gitlawb/openclaude#331), `max_tokens: 17000 > 8192, which is the maximum allowed number of output
 * tokens for …` (Claude: olimorris/codecompanion.nvim#1028), `must be less than or equal to `8192`` (Groq), `exceeds the model limit of 8192` (Bedrock)
 */
const mostPattern = /(?:^max_tokens: \d{1,10} >|at most|<=|less than or equal to|model limit of) [`'"]?(\d{1,9})\b/;
/** `the valid range of max_tokens is [1, 8192]` (DeepSeek), `Range of max_tokens should be [1, 8192]` (Qwen) */
const rangePattern = /\[ ?\d{1,6}, ?(\d{1,9}) ?\]/;
/** `the supported range is from 1 (inclusive) to 65537 (exclusive)` (Gemini) */
const exclusivePattern = /\bto (\d{1,9}) \(exclusive\)/;

/** Reads from a refusal the largest token limit of an answer that the model accepts. */
export function mostTokensIn(message: string): number | undefined {
  const text = message.slice(0, mostRead);
  if (!aboutLimit.test(text)) return undefined;
  const [, beyond] = exclusivePattern.exec(text) ?? [];
  const [, most] = rangePattern.exec(text) ?? mostPattern.exec(text) ?? [];
  const found = beyond === undefined ? Number(most) : Number(beyond) - 1;
  return found > 0 ? found : undefined;
}

/** What a refusal teaches of the limit; nothing where the client speaks the provider's wire, since its limit is not changed. */
export function limitLearned<Quirks extends LimitQuirks>({ details }: Fault, call: GenerateCall, known: Quirks, dialect: string): Quirks | undefined {
  const { mostTokens } = details;
  if (mostTokens === undefined || !isTranslated(call, dialect) || mostTokens >= (known.mostTokens ?? Infinity)) return undefined;
  return mostTokens < (call.sampling.maxTokens ?? Infinity) ? { ...known, mostTokens } : undefined;
}

/** Lowers the token limit of a call to the model's, with a warning. @returns the same call where nothing has to change */
export function withinLimit(call: GenerateCall, mostTokens: number | undefined, dialect: string, ignored: Set<string>): GenerateCall {
  const { maxTokens } = call.sampling;
  if (mostTokens === undefined || maxTokens === undefined || maxTokens <= mostTokens || !isTranslated(call, dialect)) return call;
  ignored.add(`max_tokens: lowered to ${mostTokens}, the most that this model accepts.`);
  return { ...call, sampling: { ...call.sampling, maxTokens: mostTokens } };
}
