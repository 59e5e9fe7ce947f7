import { Fault, type FaultCode, type FaultDetails } from '#core/fault';
import { isObject } from '#core/json';
import { valueIn } from '#kit/json/value-in';
import { contextLengthFault } from '../shared/context-length.ts';
import { missingIn, namesAnother } from '../shared/missing-model.ts';
import { withProviderMessage } from '../shared/provider-message.ts';
import { effortsAmong } from './accepted-effort.ts';
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
 */
export function decodeFault(status: number, body: string, headers: Headers = {}, model?: string): Fault {
  return faultOfRefusal(refusalOf(valueIn(body), status), retryAfterOf(headers), model);
}

/** An error inside a response whose status was 2xx. The status is derived from its type and code. */
export function faultOfError(error: unknown): Fault {
  const refusal = refusalOf(error, 0);
  return faultOfRefusal({ ...refusal, status: statusOf(refusal) }, undefined);
}

/** The error that a response of status 200 contains in place of its result, `{"error": {…}}` or vLLM's `{"object": "error", …}`, as a fault; undefined where it contains none. */
export function faultInAnswer(answer: Readonly<Record<string, unknown>>): Fault | undefined {
  if (isObject(answer['error'])) return faultOfError(answer['error']);
  return answer['object'] === 'error' ? faultOfError(answer) : undefined;
}

/** The codes for content that is not allowed. `cyber_policy`: router-for-me/CLIProxyAPI#4854 */
const policyPattern = /content_?(?:filter|policy)|moderation|safety|ResponsibleAI|invalid_prompt|(?:bio|cyber)_policy|policy_violation/i;
/** The codes of the Responses API for an image of the client's that cannot be read. */
const imagePattern = /^(?:invalid_(?:base64_)?image|image_(?:too_|parse_|file_)|unsupported_image_|empty_image_|failed_to_download_image)/;

function statusOf({ code, type }: Refusal): number {
  const number = Number(code);
  if (Number.isInteger(number) && number >= 400 && number < 600) return number;
  if (/rate_?limit|insufficient_quota|resource_exhausted|too_many/i.test(`${type} ${code}`)) return 429;
  if (/overload|unavailable|capacity/i.test(`${type} ${code}`)) return 503;
  if (isConnector({ type, code })) return 424;
  if (policyPattern.test(`${type} ${code}`) || /invalid_request|context_length|user_error/i.test(`${type} ${code}`) || imagePattern.test(code)) return 400;
  if (/authentication|permission|invalid_api_key|billing|payment/i.test(`${type} ${code}`)) return 401;
  return 500;
}

function faultOfRefusal(refusal: Refusal, retryAfter: number | undefined, model?: string): Fault {
  const fault = withProviderMessage(faultWithoutMessage(refusal, retryAfter, model), refusal.status, refusal.message);
  return namesResponses(refusal) ? new Fault(fault.code, fault.message, { ...fault.details, instead: 'responses' }) : fault;
}

/** Does a refusal point to the Responses API, as OpenAI's for function tools, and for models without chat, do? pipecat-ai/pipecat#4043 */
const namesResponses = ({ status, message }: Refusal) =>
  (status === 400 || status === 404 || status === 422) && /\bv1\/responses\b/.test(message.slice(0, 2000).replaceAll(/'[^']*'|"[^"]*"/g, '')); // what is quoted may be the client's

function faultWithoutMessage(refusal: Refusal, retryAfter: number | undefined, model: string | undefined): Fault {
  const { status, type, code, param } = refusal;
  const cause = { status, type: loggableCode(type), code: loggableCode(code), param: loggableCode(param) };
  const meaning = meaningIn(refusal, model);
  if (meaning === 'mistake') return faultOfMistake(refusal, cause);
  return refusalFault(meaning, cause, retryAfter);
}

function meaningIn(refusal: Refusal, model: string | undefined): Meaning {
  const { status, type, code, message } = refusal;
  const meaning = meaningOf(status);
  if ((status === 403 && isModerated(refusal)) || (status === 424 && isConnector(refusal))) return 'mistake';
  if ((meaning === 'limited' || meaning === 'mistake') && isUnpaid(refusal)) return 'unpaid'; // another key may have quota left
  if (meaning === 'mistake' && (code === 'invalid_api_key' || isAboutKey(message))) return 'credentials';
  // Groq refuses a request that is too large for the tokens of a minute with 413: openclaw/openclaw#147644
  if (meaning === 'limited' || (meaning === 'too-large' && isRateLimit(refusal))) return exceedsLimit(message) ? 'larger' : 'limited';
  if (meaning === 'overloaded' || meaning === 'credentials' || meaning === 'unpaid') return meaning;
  if (status >= 500 && /overload|resource_exhausted/i.test(`${type} ${code}`)) return 'overloaded';
  if (status === 500 && refusedRole(message.slice(0, mostRead))) return 'mistake'; // llama.cpp answers so where the model's template fails
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

/** Is it about an MCP server of the client's, whose address or credentials are wrong? https://github.com/agentgateway/agentgateway/issues/383 */
const isConnector = ({ type, code }: Pick<Refusal, 'type' | 'code'>) => type === 'external_connector_error' || code === 'external_connector_error';

/** Is a 403 about the content of the prompt, and not about the credentials? */
const isModerated = ({ isFlagged, code, type, message }: Refusal) => isFlagged || policyPattern.test(`${code} ${type}`) || isAboutPrompt(message);

/** OpenAI says it with 400 where a limit of the account's own is reached, as for images; Moonshot says `exceeded_current_quota_error`. */
const isUnpaid = ({ code, type, message }: Refusal) => unpaidPattern.test(code || type) || isAboutCredit(message);

const unpaidPattern = /^(?:insufficient_quota|exceeded_current_quota_error|billing_hard_limit_reached|billing_not_active)$/;

const isRateLimit = ({ code, type, message }: Refusal) => /rate_?limit/i.test(`${code} ${type}`) || isAboutRate(message);

/** A 429 for a request that alone exceeds the limit per minute: the limit is not used up, so other requests need not wait. */
function exceedsLimit(message: string): boolean {
  const [, limit, requested] = /^Request too large\b.{0,300}?\bLimit:? (\d{1,12}), Requested:? (\d{1,12})/i.exec(message) ?? [];
  return Number(requested) > Number(limit);
}

/** Those of OpenAI and GitHub Copilot. */
const contextCodePattern = /context_length|max_prompt_tokens/;

/** The caller's mistake, in the gateway's own words. */
function faultOfMistake({ message: text, ...refusal }: Refusal, cause: unknown): Fault {
  const { type, code, param, status } = refusal;
  const message = text.slice(0, mostRead);
  if (status === 424)
    return new Fault('invalid', 'The provider cannot list the tools of an MCP server in the request: check its address and credentials.', {
      field: 'tools',
      cause,
    });
  if (contextCodePattern.test(code) || isTextTooLong(refusal, message) || isAboutContext(message)) return contextLengthFault(message, cause);
  if (status === 403 || policyPattern.test(`${code} ${type}`)) return contentPolicyFault(cause);
  if (missingThoughtPattern.test(message))
    return new Fault('invalid', 'The provider did not accept reasoning_content.', { field: 'reasoning_content', reason: 'missing', cause });
  // Ollama names none of what it does not read: https://github.com/ollama/ollama/blob/main/openai/openai.go
  if (message === 'invalid message format')
    return new Fault('invalid', 'The provider does not accept a part of a message that is neither text nor an image or audio, such as a file.', { cause });
  const listed = listedValues(message);
  const field = refusedFormat(message) ?? (isFieldName(refusal) ? param : (refusedField(message) ?? (areEfforts(listed) ? 'reasoning_effort' : undefined)));
  const fault = fieldFault(field, cause, isUnknownField(code, message));
  const reason = refusedRole(message, field) ?? (textOnlyPattern.test(message) ? 'text-only' : undefined);
  return new Fault(fault.code, fault.message, { ...fault.details, ...(reason ? { reason } : {}), ...(listed.length > 0 ? { listed } : {}) });
}

/** Cerebras has the kind of the error in the place of the field: `validation_error`. */
const isFieldName = ({ type, code, param }: Pick<Refusal, 'type' | 'code' | 'param'>): boolean =>
  /^[A-Za-z_][\w.[\]-]{0,99}$/.test(param) && param !== type && param !== code && !/_errors?$/i.test(param);

/** As DeepSeek and Kimi say it: earendil-works/pi#3636, QuantumNous/new-api#3121. */
const missingThoughtPattern = /\breasoning_content\b.{0,80}(?:must be passed back|is missing)/;

/** Is a string too long that is part of the conversation, and not a name or an id? https://github.com/langchain-ai/langchain-mcp-adapters/issues/343 */
function isTextTooLong({ code, param }: Pick<Refusal, 'code' | 'param'>, message: string): boolean {
  if (!code.includes('string_above_max_length')) return false;
  const field = param || /^.{0,40}?'([^']{1,200})'/.exec(message.slice(0, 300))?.[1];
  return field === undefined || /(?:^|[.\]])(?:content|text|input|instructions|prompt|output|arguments)(?:\[\d{1,6}\])?$/.test(field);
}

/** Characters of a provider's message in which fields and values are looked for. */
const mostRead = 2000;

/** A list of several efforts is one of what an effort may be, also where the field is not named. */
const areEfforts = (listed: readonly string[]): boolean => effortsAmong(listed).length > 1;

/** What DeepSeek, Mistral, Groq, Perplexity and chat templates refuse of roles: earendil-works/pi#1048, theopenco/llmgateway#3462 */
function refusedRole(message: string, field = ''): 'no-system' | 'role-order' | 'roles-alternate' | 'role-unknown' | 'system-first' | undefined {
  if (/unexpected role 'user' after role 'tool'/i.test(message)) return 'role-order';
  if (rolesAlternatePattern.test(message)) return 'roles-alternate';
  if (systemFirstPattern.test(message)) return 'system-first';
  if (noSystemPattern.test(message)) return 'no-system';
  return unknownRolePattern.test(message) || /^messages\b.{1,40}\.role$/.test(field) ? 'role-unknown' : undefined;
}

/** The templates of Gemma and Mistral (vllm-project/vllm#6862), and Perplexity. */
const rolesAlternatePattern = /\broles must alternate\b|\bmessages?(?:\(s\))? (?:should|must) alternate with assistant\b/i;

/** The templates of Qwen (vllm-project/vllm#41114), and Mistral. */
const systemFirstPattern =
  /\bsystem messages?\s{1,9}(?:must|should|can only) (?:be|appear|come) (?:at the (?:begin|start)|(?:the )?first\b)|\bunexpected role 'system' after role\b|\bexception of an initial optional system message\b/i;

/** The templates of Gemma 2 and of the first Mistral 7B: huggingface/chat-ui#1386 */
const noSystemPattern =
  /\bsystem (?:role|messages?) (?:is |are )?not supported\b|\bonly user(?:,? and assistant|, assistant,? and tool) roles are supported\b/i;

const unknownRolePattern =
  /unknown variant `developer`|input tag 'developer' found using 'role'|\b(?:unexpected|unknown|invalid|unsupported) (?:message )?role\b|\brole\b.{0,60}\bdeveloper\b|\bdeveloper\b.{0,60}\brole\b|invalid value:? ['"`]developer['"`]|discriminator property 'role'/i;

/** Content of another kind than the only one that the model knows. DeepSeek: zhukunpenglinyutong/jetbrains-cc-gui#591 */
const textOnlyPattern = /unknown variant `(?:image_url|file|input_audio)`, expected `text`(?! or\b)/;

/** What is refused of a response format, where that is not the schema's own fault: its type (DeepSeek), a root that is no object (OpenAI), or that there are tools (Groq). */
function refusedFormat(message: string): string | undefined {
  if (refusedTypePatterns.some((pattern) => pattern.test(message))) return 'response_format.type';
  if (/^Invalid schema for response_format .{1,200}: schema must be a JSON Schema of 'type: "object"'/.test(message)) return 'response_format.root';
  return /^(?:json mode|response_format).{0,60} cannot be (?:combined|used) with tool/i.test(message) ? 'response_format.tools' : undefined;
}

const refusedTypePatterns = [
  /response_format(?:\.type)?['"`]? (?:type|value|of type).{0,60}(?:unavailable|not (?:available|supported)|unsupported)/i,
  /response_format\.type['"`]?(?: ?:)? .{0,60}(?:unavailable|not (?:available|supported)|unsupported|must be|should be)/i,
  /(?:invalid|unsupported|unknown) (?:value )?(?:for |of )?['"`]?response_format\.type\b/i,
  /\bjson_(?:schema|object)['"`]? (?:(?:response[_ ]format|type|mode) )?is not (?:supported|available)/i,
  /unknown variant `json_(?:schema|object)`/i,
];

/** Is the field refused whatever its value, except perhaps its default? */
function isUnknownField(code: string, message: string): boolean {
  if (/^(?:unsupported|unknown|unrecogni[sz]ed)_parameter$/i.test(code) || unsupportedField(message) !== undefined) return true;
  if (/\bonly the default\b|\bonly \d[\d.]{0,8} is allowed\b|^'n' : number must be at most 1$/i.test(message)) return true;
  if (/^unsupported_value$/i.test(code) || /unsupported value|invalid value|supported values|does not support|must be|expected one of|should be/i.test(message))
    return false;
  // A combination of fields is refused, not the field: https://github.com/BerriAI/litellm/issues/34569
  return unknownFieldPattern.test(message) && !/\/v1\/responses\b/.test(message);
}

const unknownFieldPattern = /unrecogni[sz]ed|unsupported|not supported|unknown|not permitted|unexpected|not allowed|only allowed when|extra/i;

/** xAI's words for a field that a model lacks, in its own spelling (BerriAI/litellm#12635, BerriAI/litellm#16265), and Ollama's for thinking. */
const unsupportedPattern =
  /^(?:model [^\s"']{1,200}|"[^"]{1,200}") does not support (?:parameter ([A-Za-z_]{1,60})|thinking\b)|^argument not supported on this model: ([A-Za-z_]{1,60})/i;

function unsupportedField(message: string): string | undefined {
  const found = unsupportedPattern.exec(message);
  return found ? (found[1] ?? found[2] ?? 'reasoning_effort').replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : undefined;
}

/** Optional fields that the gateway adds, renames or translates, so that a retry can omit or change them. */
const retriedField =
  /\b(stream_options|max_completion_tokens|max_tokens|reasoning_effort|reasoning_content|tool_choice|response_format|temperature|top_p|top_k|frequency_penalty|presence_penalty|logit_bias|top_logprobs|logprobs|parallel_tool_calls|prompt_cache_key|prompt_cache_options|prompt_cache_retention|safety_identifier|service_tier|verbosity|moderation|metadata|encoding_format)\b/;

/** Any field, where the sentence says that it is one. */
const namedField =
  /^(?:unrecognized request arguments? supplied|(?:unknown|unsupported|unrecognized) (?:parameter|field)|property|(?='n' : )):? ?['"`]?([A-Za-z_][\w.[\]-]{0,60})/i;

/** The field that a refusal without `param` names: a quoted place, or an optional field. */
function refusedField(message: string): string | undefined {
  const place = placeIn(message.slice(0, 1000));
  if (place !== undefined) {
    const member = /\bproperty '([a-z_]{1,60})' is (?:unsupported|not supported)/.exec(message)?.[1]; // Groq: of the message at this place
    return member === undefined ? place : `${place}.${member}`;
  }
  if (textOnlyPattern.test(message)) return 'messages'; // whichever
  if (/^Tool call id was .{1,500} but must be /.test(message)) return 'tool_call_id'; // https://github.com/anomalyco/opencode/issues/1680
  if (/^invalid reasoning value\b|^think value\b/.test(message)) return 'reasoning_effort'; // https://github.com/ollama/ollama/blob/main/openai/openai.go
  const unsupported = unsupportedField(message);
  if (unsupported !== undefined) return unsupported;
  if (
    !unknownFieldPattern.test(message) &&
    !/did not match|does not support|must (?:either )?be|should be|\bonly \d|unavailable|invalid|incorrect/i.test(message)
  )
    return undefined;
  return retriedField.exec(message)?.[1] ?? namedField.exec(message)?.[1];
}

/** A place in the conversation or the tools, as a path (OpenAI, Groq, DeepSeek, OpenRouter), as a Python tuple (vLLM) or in words (llama.cpp). */
function placeIn(message: string): string | undefined {
  const path = /(?:^|['"` ])(?:body\.)?((?:messages|input|tools)(?:\[\d{1,9}\]|\.\d{1,9})[\w.[\]]{0,80})/.exec(message)?.[1];
  if (path !== undefined) return path.endsWith('.') ? path.slice(0, -1) : path;
  const steps = /'loc': \('body', ('(?:messages|input|tools)', \d[\w', ]{0,200})\)/.exec(message)?.[1];
  if (steps !== undefined) return steps.replaceAll("'", '').split(', ').join('.');
  return toolTypePattern.test(message) ? 'tools.type' : undefined;
}

/** ggml-org/llama.cpp#20156, vllm-project/vllm#49493 */
const toolTypePattern = /^(?:unsupported|unknown|invalid) tool type\b|^tool type \w{1,40} (?:is )?not supported\b|^'type' of tool must be\b/i;

/** Words of a list of accepted values: `Supported values are: 'low' and 'high'.`, `must be one of none or default`. */
function listedValues(message: string): readonly string[] {
  const at = message.search(/supported values|should be|must be|allowed values|\bone of\b/i);
  return at < 0 ? [] : (message.slice(at).match(/\b[a-z]{2,12}\b/g) ?? []).slice(0, mostListed);
}

/** Words of such a list. */
const mostListed = 30;

/**
 * OpenAI's `{error: {message, type, param, code}}`; the same without the outer object (vLLM, Mistral); `{error: "…"}`; FastAPI's `{detail: [{loc, msg}]}`, also as `message`;
 * Google's `{error: {code, status}}`, possibly in a list.
 */
function refusalOf(value: unknown, status: number): Refusal {
  const envelope = envelopeOf(value);
  const error = isObject(envelope['error']) ? envelope['error'] : envelope;
  const detail = validationErrorIn(error);
  const location = Array.isArray(detail['loc']) ? detail['loc'].filter((one: unknown) => one !== 'body').join('.') : '';
  return {
    status,
    type: stringOf(error['type']) || stringOf(error['status']),
    code: stringOf(error['code']),
    param: stringOf(error['param']) || location,
    isFlagged: isObject(error['metadata']) && Array.isArray(error['metadata']['reasons']),
    message: stringOf(detail['msg']) || stringOf(error['message']) || stringOf(envelope['error']) || stringOf(error['detail']) || stringOf(value),
  };
}

/** The first of FastAPI's errors, which Mistral sends bare, within its message, or as the text of its message: mistralai/platform-docs-public#7 */
function validationErrorIn({ detail, message }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const text = stringOf(message);
  const inner: unknown = text.startsWith('{"detail"') ? valueIn(text) : message;
  const lists = [detail, isObject(inner) ? inner['detail'] : inner];
  for (const list of lists) if (Array.isArray(list) && isObject(list[0]) && Array.isArray(list[0]['loc'])) return list[0];
  return {};
}
