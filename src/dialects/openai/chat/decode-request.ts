import { checked } from '#kit/json/check';
import type { GenerateCall, Output } from '#core/call';
import type { Sampling } from '#core/sampling';
import { isEmpty, isObject, rest, type Extra, type Json } from '#core/json';
import { invalid } from '#core/fault';
import { carriedOf, carryUnknown } from '../../shared/nested-members.ts';
import { bodyFault, bounded, isGiven } from '../../shared/read-fields.ts';
import { askedTier } from '../usage.ts';
import { isAsItCame } from './as-it-came.ts';
import { withNestedTools } from './flat-custom-tools.ts';
import { reasoningOf, vendorFields } from './decode-reasoning.ts';
import { turnsOf } from './decode-messages.ts';
import { olderFunctionsOf } from './older-functions.ts';
import { otherServersOf, searchTool, toolChoiceOf, toolOf } from './decode-tools.ts';
import { ChatRequest, dialect } from './wire.ts';

/** Removes `readonly`, for values under construction. */
type Draft<Type> = { -readonly [Key in keyof Type]: Type[Key] };

const check = checked(ChatRequest, bodyFault);

/** Fields that the call has a member for. All others are carried. */
const understood: ReadonlySet<string> = new Set(
  (
    'model messages temperature top_p frequency_penalty presence_penalty max_tokens max_completion_tokens n seed stop ' +
    'logprobs top_logprobs logit_bias tools tool_choice parallel_tool_calls response_format reasoning_effort stream stream_options web_search_options'
  ).split(' '),
);

/**
 * A chat completion request → call.
 * @param body parsed JSON
 * @returns `usageWanted`: did the client ask for the usage chunk of a stream? `asItCame`: would a provider of this dialect understand the request as we did?
 * @throws Fault `invalid`, naming the field as the client spelled it
 */
export function decodeRequest(body: unknown): { readonly call: GenerateCall; readonly usageWanted: boolean; readonly asItCame: boolean } {
  const nested = withNestedTools(body);
  const request = check(nested);
  if (!/^[\x20-\x7e]+$/.test(request.model)) throw invalid('model', 'must be printable ASCII');
  const older = olderFunctionsOf(request);
  const tools = older?.tools ?? request.tools?.map(toolOf) ?? [];
  const toolChoice = older ? older.toolChoice : toolChoiceOf(request.tool_choice, tools);
  const reasoning = reasoningOf(request);
  const { topK } = vendorFields(request);
  const call: GenerateCall = {
    dialect,
    model: request.model,
    turns: turnsOf(request.messages),
    tools: isGiven(request.web_search_options) ? [...tools, searchTool(request.web_search_options)] : tools,
    ...(toolChoice && { toolChoice }),
    ...(older
      ? { parallelToolCalls: false, takesOneCall: true as const }
      : isGiven(request.parallel_tool_calls) && { parallelToolCalls: request.parallel_tool_calls }),
    output: outputOf(request.response_format),
    sampling: { ...samplingOf(request), ...(topK === undefined ? {} : { topK }) },
    ...(reasoning && { reasoning }),
    stream: request.stream ?? false,
    ...endUserOf(request),
    ...askedTier(request.service_tier),
    ...otherModelsOf(request),
    ...otherServersOf(tools),
    extra: extraOf(request, older !== undefined),
  };
  const asItCame = older ? isAsItCame(request, [], undefined) : isAsItCame(request, tools, toolChoice);
  return { call, usageWanted: request.stream_options?.include_usage ?? false, asItCame: asItCame && nested === body };
}

function samplingOf(request: ChatRequest): Sampling {
  const sampling: Draft<Sampling> = {};
  if (isGiven(request.temperature)) sampling.temperature = request.temperature;
  if (isGiven(request.top_p)) sampling.topP = request.top_p;
  const maxTokens = maxTokensOf(request);
  if (maxTokens !== undefined) sampling.maxTokens = maxTokens;
  if (isGiven(request.frequency_penalty)) sampling.frequencyPenalty = request.frequency_penalty;
  if (isGiven(request.presence_penalty)) sampling.presencePenalty = request.presence_penalty;
  if (isGiven(request.n)) sampling.candidates = request.n;
  if (isGiven(request.seed)) sampling.seed = request.seed;
  const stop = typeof request.stop === 'string' ? [request.stop] : (request.stop ?? []);
  if (stop.some((one) => one !== '')) sampling.stop = stop.filter((one) => one !== '');
  if (request.top_logprobs && !request.logprobs) throw invalid('top_logprobs', 'needs logprobs to be true');
  if (request.logprobs) sampling.logprobs = request.top_logprobs ?? 0;
  if (isGiven(request.logit_bias)) sampling.logitBias = request.logit_bias;
  return sampling;
}

function maxTokensOf({ max_tokens: older, max_completion_tokens: newer }: ChatRequest): number | undefined {
  if (isGiven(older) && isGiven(newer) && older !== newer) throw invalid('max_tokens', 'and max_completion_tokens are the same limit: give one of them');
  return newer ?? older ?? undefined;
}

function outputOf(format: ChatRequest['response_format']): Output {
  if (format?.type === 'json_object') return { type: 'json' };
  if (format?.type !== 'json_schema') return { type: 'text' };
  const { name, description, schema, strict } = format.json_schema;
  return {
    type: 'schema',
    schema: bounded(schema, 'response_format.json_schema.schema'),
    name,
    ...(isGiven(description) && { description }),
    ...(isGiven(strict) && { strict }),
  };
}

/** Those that OpenRouter asks where the first one fails: https://openrouter.ai/docs/guides/routing/model-fallbacks */
function otherModelsOf(request: ChatRequest): Pick<GenerateCall, 'otherModels'> | undefined {
  const { models } = request as { readonly models?: unknown };
  if (!Array.isArray(models)) return undefined;
  return { otherModels: models.flatMap((model: unknown, at) => (typeof model === 'string' ? [{ model, field: `models[${at}]` }] : [])) };
}

/** `user` is the older name. https://platform.openai.com/docs/api-reference/chat/create */
function endUserOf({ safety_identifier: identifier, user }: ChatRequest): Pick<GenerateCall, 'endUser'> | undefined {
  const endUser = identifier ?? user;
  return endUser ? { endUser } : undefined;
}

/** Fields that only this dialect has; null counts as absent. Names with a leading dot note what the client sent: stream options, and the name of the limit. */
function extraOf(request: ChatRequest, hasFunctions: boolean): Extra {
  const carried = carriedOf(request, understood);
  if (hasFunctions) {
    carried['.functions'] = true;
    if ('function_call' in carried) carried['.function_call'] = true;
    delete carried['functions'];
    delete carried['function_call'];
  }
  const { thinking, reasoning, topK } = vendorFields(request);
  if (topK !== undefined) delete carried['top_k'];
  if (thinking) {
    delete carried['thinking'];
    carried['.thinking'] = thinking;
  }
  if (reasoning) {
    delete carried['reasoning'];
    carried['.reasoning'] = reasoning;
  }
  if (request.reasoning_effort === 'default') carried['.reasoning_effort'] = 'default';
  else if (!isGiven(request.reasoning_effort) && (thinking ?? reasoning)) carried['.reasoning_effort'] = null;
  if (isGiven(request.stream_options)) {
    if (!request.stream) throw invalid('stream_options', 'is only allowed when stream is true');
    const options = rest(request.stream_options, new Set(['include_usage']));
    if (!isEmpty(options)) carried['stream_options'] = options;
    carried['.stream_options'] = true;
  }
  for (const key of Object.keys(request.metadata ?? {})) if (key.length > 64) throw invalid('metadata', 'must have keys of at most 64 characters');
  carryMembers(carried, request);
  if (isGiven(request.max_completion_tokens)) carried['.max_completion_tokens'] = true;
  else if (isGiven(request.max_tokens)) carried['.max_tokens'] = true;
  return isEmpty(carried) ? {} : { [dialect]: carried };
}

/** The members that these objects have. Others are carried by their paths. */
const members = {
  format: new Set(['type', 'json_schema']),
  schema: new Set(['name', 'description', 'schema', 'strict']),
  toolChoice: new Set(['type', 'function', 'custom', 'allowed_tools']),
  named: new Set(['name']),
  allowed: new Set(['mode', 'tools']),
};

function carryMembers(carried: Record<string, Json>, { response_format: format, tool_choice }: ChatRequest): void {
  if (format) carryUnknown(carried, 'response_format', format, members.format);
  if (format?.type === 'json_schema') carryUnknown(carried, 'response_format.json_schema', format.json_schema, members.schema);
  const choice: unknown = tool_choice;
  if (!isObject(choice)) return;
  carryUnknown(carried, 'tool_choice', choice, members.toolChoice);
  carryUnknown(carried, 'tool_choice.function', choice['function'], members.named);
  carryUnknown(carried, 'tool_choice.custom', choice['custom'], members.named);
  carryUnknown(carried, 'tool_choice.allowed_tools', choice['allowed_tools'], members.allowed);
}
