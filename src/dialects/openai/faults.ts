import { Fault, type FaultCode, type FaultDetails } from '#core/fault';
import { isObject } from '#core/json';
import { missingIn, namesAnother } from '../shared/missing-model.ts';
import { withProviderMessage } from '../shared/provider-message.ts';
import {
  contentPolicyFault,
  jsonOf,
  meaningOf,
  fieldFault,
  stringOf,
  refusalFault,
  retryAfterOf,
  envelopeOf,
  contextLengthFault,
  loggableCode,
  type Headers,
  type Meaning,
} from '../shared/upstream-faults.ts';

/** Faults → error bodies of OpenAI's wires, and providers' error responses → faults. */
export interface OpenAIError {
  readonly error: { readonly message: string; readonly type: string; readonly param: string | null; readonly code: string };
}

type TypeAndCode = readonly [type: string, code: string];

const errorCodes: Readonly<Record<FaultCode, TypeAndCode>> = {
  invalid: ['invalid_request_error', 'invalid_value'],
  unauthenticated: ['invalid_request_error', 'invalid_api_key'],
  forbidden: ['invalid_request_error', 'insufficient_scope'],
  'not-found': ['invalid_request_error', 'not_found'],
  'wrong-method': ['invalid_request_error', 'wrong_method'],
  'slow-client': ['invalid_request_error', 'slow_client'],
  conflict: ['invalid_request_error', 'conflict'],
  'too-large': ['invalid_request_error', 'too_large'],
  'unsupported-type': ['invalid_request_error', 'unsupported_type'],
  unprocessable: ['invalid_request_error', 'unprocessable'],
  'quota-spent': ['insufficient_quota', 'insufficient_quota'],
  'rate-limited': ['rate_limit_error', 'rate_limit_exceeded'],
  internal: ['server_error', 'internal_error'],
  unsupported: ['invalid_request_error', 'unsupported'],
  'upstream-failed': ['server_error', 'upstream_error'],
  overloaded: ['server_error', 'overloaded'],
  'timed-out': ['server_error', 'timeout'],
};

/** Error codes that are more specific than the fault's own. A cut stream has none: it is an upstream failure like others. */
const specificCodes: Readonly<Partial<Record<NonNullable<FaultDetails['reason']>, string>>> = {
  missing: 'missing_required_parameter',
  model: 'model_not_found',
  scope: 'insufficient_scope',
  'content-policy': 'content_policy_violation',
  'context-length': 'context_length_exceeded',
};

export function encodeFault({ code, message, details }: Fault): OpenAIError {
  const [type, word] = errorCodes[code];
  return { error: { message, type, param: details.field ?? null, code: (details.reason && specificCodes[details.reason]) ?? word } };
}

// ——— error responses of providers ———

/** The members of an error body that are understood. */
interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly param: string;
  /** Prose: scanned here, and repeated only by `withProviderMessage`. */
  readonly message: string;
  /** The body lists reasons for which the prompt was flagged. */
  readonly isFlagged: boolean;
}

/**
 * An upstream's error response → fault. Of its message only the first sentence is repeated, masked, and only where it is about the request: see
 * `withProviderMessage`.
 *
 * @param status HTTP, not 2xx
 * @param body its text, or the beginning of it
 * @param model the upstream name of the requested model
 */
export function decodeFault(status: number, body: string, headers: Headers = {}, model?: string): Fault {
  return faultOfRefusal(refusalOf(jsonOf(body), status), retryAfterOf(headers), model);
}

/** An error inside a response whose status was 2xx. The status is derived from its type and code. */
export function faultOfError(error: unknown): Fault {
  const refusal = refusalOf(error, 0);
  return faultOfRefusal({ ...refusal, status: statusOf(refusal) }, undefined);
}

function statusOf({ code, type }: Refusal): number {
  const number = Number(code);
  if (Number.isInteger(number) && number >= 400 && number < 600) return number;
  if (/rate_?limit|insufficient_quota|resource_exhausted|too_many/i.test(`${type} ${code}`)) return 429;
  if (/overload|unavailable|capacity/i.test(`${type} ${code}`)) return 503;
  if (/invalid_request|content_filter|content_policy|context_length/i.test(`${type} ${code}`)) return 400;
  if (/authentication|permission|invalid_api_key/i.test(`${type} ${code}`)) return 401;
  return 500;
}

function faultOfRefusal(refusal: Refusal, retryAfter: number | undefined, model?: string): Fault {
  const fault = withProviderMessage(faultWithoutMessage(refusal, retryAfter, model), refusal.status, refusal.message);
  const listed = fault.details.field === undefined ? [] : acceptedValues(refusal.message);
  if (listed.length === 0 && !namesResponses(refusal)) return fault;
  const instead = namesResponses(refusal) ? ({ instead: 'responses' } as const) : {};
  return new Fault(fault.code, fault.message, { ...fault.details, ...(listed.length > 0 ? { listed } : {}), ...instead });
}

/** The words in a list of accepted values: `Supported values are: 'low', 'medium', and 'high'.` */
function acceptedValues(message: string): readonly string[] {
  const [, list = ''] = /supported values are:? ([^.]{1,300})/i.exec(message.slice(0, 2000)) ?? [];
  return list.match(/\b[a-z]{2,12}\b/g)?.filter((word) => word !== 'and' && word !== 'or') ?? [];
}

/** Does a refusal point to the Responses API, as OpenAI's for function tools, and for models without chat, do? pipecat-ai/pipecat#4043 */
const namesResponses = ({ status, message }: Refusal) => (status === 400 || status === 404) && /\bv1\/responses\b/.test(message.slice(0, 2000));

function faultWithoutMessage(refusal: Refusal, retryAfter: number | undefined, model: string | undefined): Fault {
  const { status, type, code, param } = refusal;
  const cause = { status, type: loggableCode(type), code: loggableCode(code), param: loggableCode(param) };
  const meaning = meaningIn(refusal, model);
  if (meaning === 'mistake') return faultOfMistake(refusal, cause);
  const fault = refusalFault(meaning, cause, retryAfter);
  const isQuotaSpent = meaning === 'limited' && (code === 'insufficient_quota' || type === 'insufficient_quota');
  return isQuotaSpent ? new Fault(fault.code, fault.message, { ...fault.details, key: true }) : fault; // another key may have quota left
}

function meaningIn(refusal: Refusal, model: string | undefined): Meaning {
  const { status, type, code, message } = refusal;
  const meaning = meaningOf(status);
  if (status === 403 && isModerated(refusal)) return 'mistake';
  if (meaning === 'limited' && exceedsLimit(message)) return 'larger';
  if (meaning === 'limited' || meaning === 'overloaded' || meaning === 'credentials') return meaning;
  if (status >= 500 && /overload|resource_exhausted/i.test(`${type} ${code}`)) return 'overloaded';
  if (status >= 500) return meaning;
  if (isModelCode(refusal)) return namesAnother(message, model) ? 'missing' : 'model';
  return status === 404 ? missingIn(message, model) : meaning;
}

/** Is it the provider's error code for an unknown model, about the field `model`? */
function isModelCode({ status, type, code, param }: Refusal): boolean {
  if (param !== '' && param !== 'model') return false;
  if (status === 404 && param === 'model') return true;
  return (
    /^(model_not_found|invalid_model|unknown_model|DeploymentNotFound|model_not_available)$/i.test(code) || /^(model_not_found|invalid_model)$/i.test(type)
  );
}

/** Is a 403 about the content of the prompt, and not about the credentials? https://openrouter.ai/docs/api-reference/errors#moderation-errors */
const isModerated = ({ isFlagged, code, type, message }: Refusal) =>
  isFlagged || /moderation|content_?(filter|policy)/i.test(`${code} ${type}`) || /^your (input|prompt|request|message) (was|has been) flagged/i.test(message);

/** A 429 for a request that alone exceeds the limit per minute: the limit is not used up, so other requests need not wait. */
function exceedsLimit(message: string): boolean {
  const [, limit, requested] = /^Request too large\b.{0,300}?\bLimit:? (\d{1,12}), Requested:? (\d{1,12})/i.exec(message) ?? [];
  return Number(requested) > Number(limit);
}

/** Wordings of OpenAI, vLLM, llama.cpp, xAI, Hugging Face and Bedrock. */
const contextLengthPattern =
  /context (length|window|size)|maximum (context|prompt length)|(prompt|input) is too long|too many tokens|inputs?` tokens \+ `?max_new_tokens/i;

/** The caller's mistake, in the gateway's own words. */
function faultOfMistake(refusal: Refusal, cause: unknown): Fault {
  const { type, code, param, message, status } = refusal;
  if (code.includes('context_length') || isTextTooLong(refusal) || contextLengthPattern.test(message)) return contextLengthFault(cause);
  if (status === 403 || /content_?(filter|policy)|moderation|safety|ResponsibleAI/i.test(`${code} ${type}`)) return contentPolicyFault(cause);
  const field = /^[A-Za-z_][\w.[\]-]{0,99}$/.test(param) ? param : refusedField(message);
  return fieldFault(field, cause, isUnknownField(refusal));
}

/** Is a string too long that is part of the conversation, and not a name or an id? https://github.com/langchain-ai/langchain-mcp-adapters/issues/343 */
function isTextTooLong({ code, param, message }: Refusal): boolean {
  if (!code.includes('string_above_max_length')) return false;
  const field = param || /^.{0,40}?'([^']{1,200})'/.exec(message.slice(0, 300))?.[1];
  return field === undefined || /(?:^|[.\]])(?:content|text|input|instructions|prompt|output|arguments)(?:\[\d{1,6}\])?$/.test(field);
}

/** Is the field refused whatever its value? */
function isUnknownField({ code, message }: Refusal): boolean {
  if (/^(?:unsupported|unknown|unrecogni[sz]ed)_parameter$/i.test(code)) return true;
  if (/^unsupported_value$/i.test(code) || /unsupported value|invalid value|supported values|does not support|must be|expected one of/i.test(message))
    return false;
  return unknownFieldPattern.test(message);
}

const unknownFieldPattern = /unrecogni[sz]ed|unsupported|not supported|unknown|not permitted|unexpected|not allowed|extra/i;

/** For refusals without `param`: finds the optional fields that the gateway adds or renames, so that a retry can omit them. */
function refusedField(message: string): string | undefined {
  if (!unknownFieldPattern.test(message)) return undefined;
  return /\b(stream_options|max_completion_tokens|max_tokens|reasoning_effort)\b/.exec(message)?.[1];
}

/**
 * OpenAI's `{error: {message, type, param, code}}`; the same without the outer object (vLLM, Mistral); `{error: "…"}`; FastAPI's `{detail: [{loc, msg}]}`;
 * Google's `{error: {code, status}}`, possibly in a list.
 */
function refusalOf(value: unknown, status: number): Refusal {
  const envelope = envelopeOf(value);
  const error = isObject(envelope['error']) ? envelope['error'] : envelope;
  const detail = Array.isArray(error['detail']) && isObject(error['detail'][0]) ? error['detail'][0] : {};
  const location = Array.isArray(detail['loc']) ? detail['loc'].filter((one: unknown) => one !== 'body').join('.') : '';
  return {
    status,
    type: stringOf(error['type']) || stringOf(error['status']),
    code: stringOf(error['code']),
    param: stringOf(error['param']) || location,
    isFlagged: isObject(error['metadata']) && Array.isArray(error['metadata']['reasons']),
    message: stringOf(error['message']) || stringOf(envelope['error']) || stringOf(error['detail']) || stringOf(detail['msg']) || stringOf(value),
  };
}
