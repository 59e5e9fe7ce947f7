import { Fault, type FaultCode } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import { missingIn } from '../shared/missing-model.ts';
import { inOwnWords } from '../shared/provider-message.ts';
import {
  jsonOf,
  meaningOf,
  notAccepted,
  proseOf,
  refused,
  retryAfterOf,
  shellOf,
  tooLong,
  wordOf,
  type Headers,
  type Meaning,
} from '../shared/upstream-faults.ts';

/** Faults in Google's shape, and a provider's refusals as faults. https://cloud.google.com/apis/design/errors */
export interface GeminiError {
  readonly error: { readonly code: number; readonly message: string; readonly status: string; readonly details: readonly JsonObject[] };
}

const words: Readonly<Record<FaultCode, string>> = {
  invalid: 'INVALID_ARGUMENT',
  unauthenticated: 'UNAUTHENTICATED',
  forbidden: 'PERMISSION_DENIED',
  'not-found': 'NOT_FOUND',
  'wrong-method': 'INVALID_ARGUMENT',
  'slow-client': 'INVALID_ARGUMENT',
  conflict: 'ALREADY_EXISTS',
  'too-large': 'INVALID_ARGUMENT',
  'unsupported-type': 'INVALID_ARGUMENT',
  unprocessable: 'INVALID_ARGUMENT',
  'quota-spent': 'RESOURCE_EXHAUSTED',
  'rate-limited': 'RESOURCE_EXHAUSTED',
  internal: 'INTERNAL',
  unsupported: 'UNIMPLEMENTED',
  'upstream-failed': 'INTERNAL',
  overloaded: 'UNAVAILABLE',
  'timed-out': 'DEADLINE_EXCEEDED',
};

export function encodeFault({ code, status, message, details: { field, retryAfter } }: Fault): GeminiError {
  const details: JsonObject[] = [];
  if (field !== undefined) details.push({ '@type': `${types}BadRequest`, fieldViolations: [{ field, description: message }] });
  if (retryAfter !== undefined) details.push({ '@type': `${types}RetryInfo`, retryDelay: `${Math.max(0, Math.round(retryAfter * 1000) / 1000)}s` });
  return { error: { code: status, message, status: words[code], details } };
}

const types = 'type.googleapis.com/google.rpc.';

// ——— what a provider says ———

/** Statuses of the errors that come inside of an answer that began as a good one, and say no number. */
const statuses: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
};

/**
 * An upstream's refusal → fault. Of its text only the first sentence is repeated, masked, and only where it is about the request (`inOwnWords`).
 *
 * @param status HTTP, not 2xx
 * @param body its text, or the beginning of it: an error, or an array of one where a stream was asked for
 * @param model the upstream name of the model that was asked
 */
export function decodeFault(status: number, body: string, headers: Headers = {}, model?: string): Fault {
  const { error } = shellOf(jsonOf(body));
  return faultOfRefusal(status, isObject(error) ? error : {}, retryAfterOf(headers), model);
}

/** An error inside of an answer that began as a good one. */
export function faultOfError(error: unknown): Fault {
  const refusal = isObject(error) ? error : {};
  const { code } = refusal;
  const said = typeof code === 'number' && code >= 400 && code < 600 ? code : 500;
  return faultOfRefusal(statuses[proseOf(refusal['status'])] ?? said, refusal, undefined);
}

/** An answer that is none. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not generated content.', { elsewhere: true });

function faultOfRefusal(status: number, refusal: Readonly<Record<string, unknown>>, told: number | undefined, model?: string): Fault {
  const word = proseOf(refusal['status']);
  const message = proseOf(refusal['message']);
  const cause = { status, type: wordOf(word) };
  const meaning = meaningIn(status, refusal, model);
  const fault = meaning === 'mistake' ? faultOfMistake(message, cause) : refused(meaning, cause, told ?? delayOf(refusal['details']));
  return inOwnWords(fault, status, message);
}

function meaningIn(status: number, refusal: Readonly<Record<string, unknown>>, model: string | undefined): Meaning {
  const word = proseOf(refusal['status']);
  const message = proseOf(refusal['message']);
  const meaning = meaningOf(status);
  if (meaning === 'limited' || word === 'RESOURCE_EXHAUSTED') return 'limited';
  if (meaning === 'overloaded' || word === 'UNAVAILABLE') return 'overloaded';
  // At the front, where no name that the request gave can stand.
  if (/^(?:your |the )?API[ _]key\b/i.test(message) || reasonOf(refusal['details']) === 'API_KEY_INVALID') return 'credentials';
  if (status === 404) return missingIn(message, model);
  return status === 499 ? 'failed' : meaning; // it was ended, by whomever
}

/** The caller's mistake, in a sentence of ours, with the name of the field. */
function faultOfMistake(message: string, cause: unknown): Fault {
  if (/token count|context (window|length)|too many tokens|exceeds the maximum number of tokens/i.test(message)) return tooLong(cause);
  if (/thought[_ ]?signature/i.test(message)) return notAccepted('thoughtSignature', cause);
  if (/thinking/i.test(message))
    return notAccepted(
      'generationConfig.thinkingConfig',
      cause,
      /unknown name/i.test(message) || !/invalid|only works|between|out of range|at (?:least|most)/i.test(message),
    );
  const unknown = /Unknown name "?\\?"?([A-Za-z_]{2,40})/.exec(message)?.[1];
  if (unknown !== undefined) return new Fault('invalid', `The provider does not know ${unknown}.`, { field: unknown, reason: 'field-unknown', cause });
  const field = /\b((?:generation_config|contents|tools|system_instruction|tool_config|safety_settings)[\w.[\]]{0,80})/.exec(message)?.[1]?.replace(/\.$/, '');
  return notAccepted(field, cause);
}

/** Seconds, as `RetryInfo` says them: `34.4s`. */
function delayOf(details: unknown): number | undefined {
  const said = detailsOf(details).flatMap((one) => {
    const seconds = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(proseOf(one['retryDelay']))?.[1];
    return seconds === undefined ? [] : [Number(seconds)];
  });
  return said.find((seconds) => seconds > 0 && seconds <= 3600);
}

const reasonOf = (details: unknown): string | undefined =>
  detailsOf(details)
    .map((one) => proseOf(one['reason']))
    .find(Boolean);
const detailsOf = (details: unknown): readonly Readonly<Record<string, unknown>>[] => (Array.isArray(details) ? details.filter(isObject) : []);
