import { Fault, type FaultCode } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import { valueIn } from '#kit/json/value-in';
import { refused } from './quirks.ts';
import { contextLengthFault } from '../shared/context-length.ts';
import { missingIn } from '../shared/missing-model.ts';
import { withProviderMessage } from '../shared/provider-message.ts';
import {
  contentPolicyFault,
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

/** Faults → Google's error bodies, and providers' error responses → faults. https://cloud.google.com/apis/design/errors */
export interface GeminiError {
  readonly error: { readonly code: number; readonly message: string; readonly status: string; readonly details: readonly JsonObject[] };
}

const statusNames: Readonly<Record<FaultCode, string>> = {
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
  return { error: { code: status, message, status: statusNames[code], details } };
}

const types = 'type.googleapis.com/google.rpc.';

// ——— error responses of providers ———

/** HTTP statuses of the errors without a numeric code that come inside a response whose own status was 2xx. */
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
 * An upstream's error response → fault. Of its message only the first sentence is repeated, masked, and only where it is about the request: see
 * `withProviderMessage`.
 * @param body an error, or an array of one where a stream was asked for
 */
export function decodeFault(status: number, body: string, headers: Headers = {}, model?: string): Fault {
  const { error } = envelopeOf(valueIn(body));
  return faultOfRefusal(status, isObject(error) ? error : {}, retryAfterOf(headers), model);
}

/** An error inside a response whose status was 2xx. */
export function faultOfError(error: unknown): Fault {
  const refusal = isObject(error) ? error : {};
  const { code } = refusal;
  const httpStatus = typeof code === 'number' && code >= 400 && code < 600 ? code : 500;
  return faultOfRefusal(statuses[stringOf(refusal['status'])] ?? httpStatus, refusal, undefined);
}

/** The fault for a response that is not an answer of this wire. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not generated content.', { elsewhere: true });

/**
 * An answer that has no content, because the model failed.
 * @param reason its finish reason
 * @param message what the provider says of it, for the log
 * @param isWhole nothing of the answer was given out: the request may be sent again
 */
export function withoutContent(reason: string | undefined, message: unknown, isWhole: boolean): Fault {
  const said = loggableCode(reason ?? '');
  return new Fault('upstream-failed', `The model ended its answer without any content${said === undefined ? '' : `: ${said}`}.`, {
    elsewhere: true,
    ...(said === undefined ? {} : { said }),
    ...(isWhole && said === 'MISSING_THOUGHT_SIGNATURE' ? { lacks: refused.signature } : {}),
    cause: message,
  });
}

function faultOfRefusal(status: number, refusal: Readonly<Record<string, unknown>>, retryAfter: number | undefined, model?: string): Fault {
  const word = stringOf(refusal['status']);
  const message = stringOf(refusal['message']);
  const cause = { status, type: loggableCode(word) };
  const meaning = meaningIn(status, refusal, model);
  const fault = meaning === 'mistake' ? faultOfMistake(message, cause) : refusalFault(meaning, cause, retryAfter ?? delayOf(refusal['details']));
  return withProviderMessage(fault, status, message);
}

function meaningIn(status: number, refusal: Readonly<Record<string, unknown>>, model: string | undefined): Meaning {
  const word = stringOf(refusal['status']);
  const message = stringOf(refusal['message']);
  const meaning = meaningOf(status);
  if (meaning === 'limited' || word === 'RESOURCE_EXHAUSTED' || (meaning === 'too-large' && isAboutRate(message))) return 'limited';
  if (meaning === 'overloaded' || word === 'UNAVAILABLE') return 'overloaded';
  // At the start, where no name from the request can be.
  if (status === 403 && isAboutPrompt(message)) return 'mistake';
  if (isAboutKey(message) || /^user location is not supported\b/i.test(message) || reasonOf(refusal['details']) === 'API_KEY_INVALID') return 'credentials';
  if (status === 404) return missingIn(message, model);
  return meaning;
}

/** The caller's mistake, in the gateway's own words, with the field's name. */
function faultOfMistake(message: string, cause: unknown): Fault {
  if (/token count|context (window|length)|too many tokens|exceeds the maximum number of tokens/i.test(message)) return contextLengthFault(message, cause);
  if (isAboutPrompt(message)) return contentPolicyFault(cause);
  if (/thought[_ ]?signature/i.test(message)) return fieldFault(refused.signature, cause);
  if (/thinking/i.test(message)) return thinkingFault(message.slice(0, readCharacters), cause);
  if (/\bpenalty is not enabled\b/i.test(message)) return fieldFault(refused.penalties, cause);
  if (/\bresponse mime type\b.{0,60}\bunsupported\b/i.test(message)) return fieldFault(refused.json, cause);
  if (/\bfunction_response\.parts\b.{0,10} is not supported\b/i.test(message)) return fieldFault(refused.media, cause);
  const [, unknown, place] = /Unknown name "?\\?"?([A-Za-z_]\w{1,39})(?:\\?" at '([\w.[\]]{1,200})')?/.exec(message) ?? [];
  if (unknown !== undefined) return fieldFault(place === undefined ? unknown : `${inCamelCase(place)}.${unknown}`, cause, true);
  const field = /\b((?:generation_config|contents|tools|system_instruction|tool_config|safety_settings)[\w.[\]]{0,80})/.exec(message)?.[1]?.replace(/\.$/, '');
  return fieldFault(field === undefined ? undefined : inCamelCase(field), cause);
}

/** Google names the objects around a field in snake_case, whatever the request has. */
const inCamelCase = (place: string): string => place.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** Characters of a message that are read. */
const readCharacters = 2000;

/**
 * What a provider says of thinking: of a budget, of a level, or of either. Words of the value it refuses (`Budget 0 is invalid. This model only works in thinking mode.`,
 * `thinking_budget is out of range; supported values are integers from 1 to 24576.`, `Thinking level MEDIUM is not supported for this model.`), or of the field
 * (`Thinking level is not supported for this model.`). https://github.com/snailyp/gemini-balance/issues/206, https://github.com/RooCodeInc/Roo-Code/issues/10700
 */
function thinkingFault(message: string, cause: unknown): Fault {
  const field = /\bthinking[ _]?level/i.test(message) ? refused.level : /budget/i.test(message) ? refused.budget : refused.thinking;
  const [, least, most] = /\b(?:from|between) (\d{1,7}) (?:to|and) (\d{1,7})\b/.exec(message) ?? [];
  const isLevel =
    /\bthinking[ _]?level[ _:]{1,2}(?:is unsupported: )?(?:THINKING_LEVEL_)?(?:MINIMAL|LOW|MEDIUM|HIGH)\b/i.test(message) ||
    /THINKING_LEVEL_[A-Z]/.test(message);
  const isBudget = /\bbudget(?: of| value)?[ :=]{1,2}-?\d{1,7}\b/i.test(message);
  const isValue = isLevel || isBudget || least !== undefined || /invalid|only works|out of range|at (?:least|most)/i.test(message);
  const { message: text, details } = fieldFault(field, cause, /unknown name/i.test(message) || !isValue);
  return new Fault('invalid', text, { ...details, ...(least === undefined ? {} : { range: { least: Number(least), most: Number(most) } }) });
}

/** Seconds from `RetryInfo`, such as `34.4s`. */
function delayOf(details: unknown): number | undefined {
  const delays = detailsOf(details).flatMap((one) => {
    const seconds = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(stringOf(one['retryDelay']))?.[1];
    return seconds === undefined ? [] : [Number(seconds)];
  });
  return delays.find((seconds) => seconds > 0 && seconds <= 3600);
}

const reasonOf = (details: unknown): string | undefined =>
  detailsOf(details)
    .map((one) => stringOf(one['reason']))
    .find(Boolean);
const detailsOf = (details: unknown): readonly Readonly<Record<string, unknown>>[] => (Array.isArray(details) ? details.filter(isObject) : []);
