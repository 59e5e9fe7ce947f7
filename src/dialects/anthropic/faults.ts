import { Fault, type FaultCode } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import { valueIn } from '#kit/json/value-in';
import { contextLengthFault } from '../shared/context-length.ts';
import { missingIn } from '../shared/missing-model.ts';
import { withProviderMessage } from '../shared/provider-message.ts';
import {
  contentPolicyFault,
  isAboutContext,
  isAboutCredit,
  isAboutKey,
  isAboutPrompt,
  isAboutRate,
  meaningOf,
  fieldFault,
  stringOf,
  refusalFault,
  retryAfterOf,
  envelopeOf,
  loggableCode,
  type Headers,
  type Meaning,
} from '../shared/upstream-faults.ts';

/** Faults → error bodies of this wire, and providers' error responses → faults. https://platform.claude.com/docs/en/api/errors */
export interface MessagesError {
  readonly type: 'error';
  readonly error: { readonly type: string; readonly message: string; readonly details?: JsonObject };
  readonly request_id: string | null;
}

const errorTypes: Readonly<Record<FaultCode, string>> = {
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

export function encodeFault(fault: Fault, requestId: string): MessagesError {
  const details = fault.details.reason === 'thread' ? { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } } : {};
  return { type: 'error', error: { type: errorTypes[fault.code], message: messageOf(fault), ...details }, request_id: requestId };
}

/** Claude Code recognises a conversation that is too long, and shortens it, by these words of Anthropic's and by the numbers in them. */
function messageOf({ message, details: { reason, context, outputRoom } }: Fault): string {
  if (reason !== 'context-length' || outputRoom !== undefined) return message; // shorter answers would do
  return `prompt is too long${context ? `: ${context.tokens} tokens > ${context.most} maximum` : ''}. ${message}`;
}

/** The last frame of a stream that failed: no `message_stop` follows it. */
export const encodeFaultFrame = (fault: Fault, requestId: string): string => `event: error\ndata: ${JSON.stringify(encodeFault(fault, requestId))}\n\n`;

// ——— error responses of providers ———

/** HTTP statuses of the errors that come inside a response whose own status was 2xx. */
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
 * An upstream's error response → fault. Of its message only the first sentence is repeated, masked, and only where it is about the request: see
 * `withProviderMessage`.
 */
export function decodeFault(status: number, body: string, headers: Headers = {}, model?: string): Fault {
  const envelope = envelopeOf(valueIn(body));
  return faultOfRefusal(status, isObject(envelope['error']) ? envelope['error'] : envelope, retryAfterOf(headers), model);
}

/** An error inside a response whose status was 2xx. */
export function faultOfError(error: unknown): Fault {
  const refusal = isObject(error) ? error : {};
  return faultOfRefusal(statuses[stringOf(refusal['type'])] ?? 500, refusal, undefined);
}

/** The fault for a response that is not an answer of this wire. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a message.', { elsewhere: true });

function faultOfRefusal(status: number, refusal: Readonly<Record<string, unknown>>, retryAfter: number | undefined, model?: string): Fault {
  const type = stringOf(refusal['type']);
  const message = stringOf(refusal['message']);
  const cause = { status, type: loggableCode(type) };
  const meaning = meaningIn({ status, type, message }, model);
  return withProviderMessage(meaning === 'mistake' ? faultOfMistake(message, cause) : refusalFault(meaning, cause, retryAfter), status, message);
}

function meaningIn(
  { status, type, message }: { readonly status: number; readonly type: string; readonly message: string },
  model: string | undefined,
): Meaning {
  const meaning = meaningOf(status);
  if (meaning === 'limited' || meaning === 'overloaded') return meaning;
  if (meaning === 'too-large' && (type === 'rate_limit_error' || isAboutRate(message))) return 'limited';
  if (type === 'overloaded_error') return 'overloaded';
  if (status === 403 && isAboutPrompt(message)) return 'mistake';
  if (isAboutCredit(message)) return 'unpaid';
  if (meaning === 'mistake' && isAboutKey(message)) return 'credentials';
  if (status !== 404) return meaning;
  const missing = missingIn(message, model);
  // Worded differently from the message for a wrong URL: it is about something that the request names.
  return missing === 'address' && type === 'not_found_error' && !/^\W*(?:not found\W*)?$|\b(?:url|route|path|endpoint)\b/i.test(message) ? 'missing' : missing;
}

/** The caller's mistake, in the gateway's own words, with the field's name from the start of the message (before a colon, or quoted). */
function faultOfMistake(message: string, cause: unknown): Fault {
  if (isAboutContext(message)) return contextLengthFault(message, cause);
  if (/content filtering|usage policy/i.test(message) || isAboutPrompt(message)) return contentPolicyFault(cause);
  const [, place, field] = /^["`]?(([a-z_]{2,40})(?:\.[\w.-]{0,80})?)["`]?(?::|,| is | are | may | must | and | cannot | forces )/.exec(message) ?? [];
  const fault = fieldFault(field, cause, /deprecated|not supported|unsupported|does not support|not permitted|unexpected/i.test(message));
  return place === field ? fault : new Fault(fault.code, fault.message, { ...fault.details, place: place! });
}
