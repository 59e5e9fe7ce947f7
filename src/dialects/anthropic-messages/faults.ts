import { Fault, type FaultCode } from '#model/fault';
import { isObject } from '#model/json';
import { proseOf, retryAfterOf, wordOf, type Headers } from '../refusals.ts';

/** Faults in the words of this wire, and a provider's refusals as faults. https://platform.claude.com/docs/en/api/errors */
export interface MessagesError {
  readonly type: 'error';
  readonly error: { readonly type: string; readonly message: string };
  readonly request_id: string | null;
}

const words: Readonly<Record<FaultCode, string>> = {
  invalid: 'invalid_request_error',
  unauthenticated: 'authentication_error',
  forbidden: 'permission_error',
  'not-found': 'not_found_error',
  'wrong-method': 'invalid_request_error',
  'slow-client': 'invalid_request_error',
  conflict: 'conflict_error',
  'too-large': 'request_too_large',
  'unsupported-type': 'invalid_request_error',
  unprocessable: 'invalid_request_error',
  'quota-spent': 'rate_limit_error',
  'rate-limited': 'rate_limit_error',
  internal: 'api_error',
  unsupported: 'invalid_request_error',
  'upstream-failed': 'api_error',
  overloaded: 'overloaded_error',
  'timed-out': 'timeout_error',
};

export function encodeFault({ code, message }: Fault, requestId: string): MessagesError {
  return { type: 'error', error: { type: words[code], message }, request_id: requestId };
}

/** The last frame of a stream that failed: no `message_stop` follows it. */
export function encodeFaultFrame(fault: Fault, requestId: string): string {
  return `event: error\ndata: ${JSON.stringify(encodeFault(fault, requestId))}\n\n`;
}

// ——— what a provider says ———

/** The statuses of the errors that come inside of an answer that began as a good one. */
const statuses: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
};

/**
 * An upstream's refusal → fault. Its text goes neither to the client nor into the log: it may repeat a prompt or a part of a key.
 *
 * @param status HTTP, not 2xx
 * @param body its text, or the beginning of it
 */
export function decodeFault(status: number, body: string, headers: Headers = {}): Fault {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    value = undefined;
  }
  const shell = isObject(value) ? value : {};
  return faultOfRefusal(status, isObject(shell['error']) ? shell['error'] : shell, retryAfterOf(headers));
}

/** An error inside of an answer that began as a good one. */
export function faultOfError(error: unknown): Fault {
  const refusal = isObject(error) ? error : {};
  return faultOfRefusal(statuses[proseOf(refusal['type'])] ?? 500, refusal, undefined);
}

/** An answer that is none. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a message.', { elsewhere: true });

function faultOfRefusal(status: number, refusal: Readonly<Record<string, unknown>>, retryAfter: number | undefined): Fault {
  const type = proseOf(refusal['type']);
  const message = proseOf(refusal['message']);
  const cause = { status, type: wordOf(type) };
  const wait = retryAfter === undefined ? {} : { retryAfter };
  if (status === 429) return new Fault('rate-limited', 'The provider is asked too often at the moment.', { elsewhere: true, ...wait, cause });
  if (status === 503 || status === 529 || type === 'overloaded_error')
    return new Fault('overloaded', 'The provider is overloaded at the moment.', { elsewhere: true, ...wait, cause });
  if (status === 401 || status === 402 || status === 403 || /credit balance/i.test(message))
    return new Fault('upstream-failed', 'The provider did not accept our credentials.', { key: true, cause });
  if (status === 404 && (type === 'not_found_error' || /\bmodel\b/i.test(message)) && !/\b(path|url|endpoint|route)\b/i.test(message))
    return new Fault('not-found', 'The provider does not have this model.', { reason: 'model', absent: true, elsewhere: true, cause });
  if (status === 400 || status === 422) return faultOfMistake(message, cause);
  if (status === 413) return new Fault('too-large', 'The request is larger than the provider takes.', { cause });
  if (status === 404 || (status > 404 && status < 500 && status !== 408))
    return new Fault('upstream-failed', 'The provider does not answer at its address.', { cause });
  return new Fault('upstream-failed', 'The provider failed.', { elsewhere: true, ...wait, cause });
}

/** The caller's mistake, in a sentence of ours. Of the provider's only the name of a field is taken: it stands at the front, before a colon or between backticks. */
function faultOfMistake(message: string, cause: unknown): Fault {
  if (/prompt is too long|context (window|limit|length)/i.test(message))
    return new Fault('invalid', "The conversation is longer than the model's context.", { reason: 'context-length', cause });
  if (/content filtering|usage policy/i.test(message))
    return new Fault('invalid', "The provider's content policy does not allow this request.", { reason: 'content-policy', cause });
  const field = /^["`]?([a-z_]{2,40})(?:\.[\w.-]{0,80})?["`]?(?::| is | may | and | cannot )/.exec(message)?.[1];
  if (field === undefined) return new Fault('invalid', 'The provider did not accept the request.', { cause });
  const unknown = /deprecated|not supported|unsupported|does not support|not permitted|unexpected/i.test(message);
  return new Fault('invalid', `The provider did not accept ${field}.`, { field, ...(unknown ? { reason: 'field-unknown' } : {}), cause });
}
