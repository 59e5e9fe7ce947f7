import { Fault } from '#core/fault';
import { isObject, textOf } from '#core/json';
import { firstSentence } from './provider-message.ts';

/** Helpers for decoding a provider's error response, shared by all dialects. */

/** Header names in lower case. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Seconds. A longer wait is ignored: no request would wait for it. */
const longestWait = 3600;

/**
 * Seconds to wait according to `retry-after-ms` or `retry-after`; undefined where neither is plausible. A date is compared with the sender's own `date` header, if there is one.
 * https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
 */
export function retryAfterOf(headers: Headers): number | undefined {
  const header = (name: string) => {
    const value = headers[name];
    return (typeof value === 'string' ? value : value?.[0])?.trim() ?? '';
  };
  const milliseconds = header('retry-after-ms');
  const after = header('retry-after');
  const sent = header('date');
  const sane = [
    /^\d+(\.\d+)?$/.test(milliseconds) ? Number(milliseconds) / 1000 : NaN,
    /^\d+(\.\d+)?$/.test(after) ? Number(after) : NaN,
    /[a-z]/i.test(after) ? (Date.parse(after) - (sent === '' ? Date.now() : Date.parse(sent))) / 1000 : NaN,
  ];
  return sane.find((seconds) => seconds > 0 && seconds <= longestWait);
}

/** An error code of one word may be logged and shown; prose may not, nor a word that could be a key or an id. */
export const loggableCode = (value: string) => (/^[\w.[\]-]{1,64}$/.test(value) && firstSentence(value) === value ? value : undefined);
export const stringOf = (value: unknown) => (typeof value === 'number' ? String(value) : textOf(value));

/** The object that holds an error: the value itself, or the first element of a list. */
export const envelopeOf = (value: unknown): Readonly<Record<string, unknown>> => {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return isObject(first) ? first : {};
};

/**
 * What a refusal means. `mistake`: the caller's. `unpaid`: the account has no credit left. `larger`: exceeds the limit per minute on its own. `missing`: something that the request names. `address`: the
 * endpoint does not exist.
 */
export type Meaning = 'limited' | 'overloaded' | 'credentials' | 'unpaid' | 'model' | 'mistake' | 'too-large' | 'larger' | 'missing' | 'address' | 'failed';

/** The meaning of the status alone. */
export function meaningOf(status: number): Meaning {
  if (status === 429) return 'limited';
  if (status === 503 || status === 529 || status === 498) return 'overloaded'; // 498: https://console.groq.com/docs/errors
  if (status === 402) return 'unpaid';
  if (status === 401 || status === 403) return 'credentials';
  if (status === 400 || status === 422) return 'mistake';
  if (status === 413) return 'too-large';
  return status >= 404 && status < 500 && !failures.has(status) ? 'address' : 'failed';
}

/** Statuses below 500 that are not about the request: a timeout, a conflict, a failed dependency, too early, and a connection closed before the answer. */
const failures: ReadonlySet<number> = new Set([408, 409, 424, 425, 499]);

/** Does the message of a 403 speak of the prompt, and not of the credentials? https://openrouter.ai/docs/api-reference/errors#moderation-errors */
export const isAboutPrompt = (message: string) =>
  /^your (?:input|prompt|request|message) (?:was|has been) flagged|^\S{0,40} ?requires moderation\b/i.test(message);

/** Does the message of a 400 speak of the API key, as Google's and xAI's do? Only at its start, and not of a field `api_key`, whose name may be there. */
export const isAboutKey = (message: string) => /^(?:your |the |incorrect |invalid )?API key\b/i.test(message);

/** Does the message say that the account has no money left? Only at its start, where no name from the request can be. */
export const isAboutCredit = (message: string) =>
  /^(?:your credit balance|insufficient (?:balance|credits?|funds)\b|your account .{0,80}is suspended)/i.test(message);

/** Does the message of a 413 speak of a limit in a period, and not of what fits at all? */
export const isAboutRate = (message: string) => /\btokens per (?:minute|day)\b/i.test(message.slice(0, 300));

/** A refusal that is not the caller's mistake, as a fault. @param retryAfter seconds */
export function refusalFault(meaning: Exclude<Meaning, 'mistake'>, cause: unknown, retryAfter?: number): Fault {
  const wait = retryAfter === undefined ? {} : { retryAfter };
  switch (meaning) {
    case 'limited':
      return new Fault('rate-limited', 'The rate limit of the provider is exceeded at the moment.', { elsewhere: true, ...wait, cause });
    case 'overloaded':
      return new Fault('overloaded', 'The provider is overloaded at the moment.', { elsewhere: true, ...wait, cause });
    case 'credentials':
      return new Fault('upstream-failed', 'The provider did not accept our credentials.', { key: true, cause });
    case 'unpaid':
      return new Fault('upstream-failed', 'The account at the provider has no credit left.', { key: true, cause: unpaidCause(cause) });
    case 'model':
      return new Fault('not-found', 'The provider does not have this model.', { reason: 'model', absent: true, elsewhere: true, cause });
    case 'missing':
      return new Fault('not-found', 'The provider does not have something that the request refers to, such as a file.', { cause });
    case 'larger':
      return new Fault('rate-limited', 'The request is larger than the provider accepts per minute.', { elsewhere: true, exceedsLimit: true, ...wait, cause });
    case 'too-large':
      return new Fault('too-large', 'The request is larger than the provider accepts.', { cause });
    case 'address':
      return new Fault('upstream-failed', 'The provider does not answer at its address.', { cause });
    case 'failed':
      return new Fault('upstream-failed', 'The provider failed.', { elsewhere: true, ...wait, cause });
    default:
      return meaning satisfies never;
  }
}

/** Providers that have no code of their own for it are given OpenAI's. */
const unpaidCause = (cause: unknown) => (isObject(cause) && cause['code'] === undefined ? { ...cause, code: 'insufficient_quota' } : cause);

/**
 * Does the message say that the conversation is too long? Wordings of OpenAI, Anthropic, vLLM, llama.cpp, xAI and Bedrock, then of Hugging Face, Groq, Moonshot,
 * Copilot, Zhipu, Qwen, Poolside and Google's interface for OpenAI clients.
 */
export const isAboutContext = (message: string) =>
  /context (length|window|size|limit)|maximum (context|prompt length|model length)|(prompt|input) is too long|too many tokens/i.test(message) ||
  /inputs?` (?:tokens \+ `?max_new_tokens|must have less than \d{1,9} tokens)|reduce the length of the (?:messages|prompt|input)/i.test(message) ||
  /exceeded model token limit|(?:input|prompt) token count\b|prompt exceeds max length|range of input length should be|maximum allowed input length/i.test(
    message,
  );

export const contentPolicyFault = (cause: unknown): Fault =>
  new Fault('invalid', "The provider's content policy does not allow this request.", { reason: 'content-policy', cause });

/** @param isUnknown the provider does not know the field, whatever its value */
export function fieldFault(field: string | undefined, cause: unknown, isUnknown = false): Fault {
  if (field === undefined) return new Fault('invalid', 'The provider did not accept the request.', { cause });
  return new Fault('invalid', `The provider did not accept ${field}.`, { field, ...(isUnknown ? { reason: 'field-unknown' } : {}), cause });
}
