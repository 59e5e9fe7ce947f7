import { Type } from 'typebox';
import { checked } from '#kit/json/check';
import type { GenerateCall, Output } from '#core/call';
import type { Sampling } from '#core/sampling';
import type { Turn } from '#core/conversation';
import { isEmpty, isObject, membersWhere, rest, type Extra, type Json, type JsonObject } from '#core/json';
import { invalid } from '#core/fault';
import { carriedOf, carryUnknown } from '../../shared/nested-members.ts';
import { bodyFault, bounded, isGiven } from '../../shared/read-fields.ts';
import { askedTier } from '../usage.ts';
import { orderTurns } from './order-turns.ts';
import { declaredTools } from './declared-tools.ts';
import { toolChoiceOf, toolsInItem, toolsOf, type Chosen } from './decode-tools.ts';
import { otherServersOf } from './mcp-tools.ts';
import { withListed, withoutSteps } from './server-steps.ts';
import { dialect, Input, ResponsesRequest, sisterFields, type WireItem } from './wire.ts';

const check = checked(ResponsesRequest, bodyFault);
const checkItems = checked(Type.Object({ items: Input }), bodyFault);

/** Checks the body of a request against its schema. @param body parsed JSON. @throws Fault `invalid`, naming the field as the client spelled it */
export function requestOf(body: unknown): ResponsesRequest {
  if (isObject(body)) checkTypes(body['input'], 'input');
  const request = check(withReferences(withInput(body)));
  if (!/^[\x20-\x7e]+$/.test(request.model)) throw invalid('model', 'must be printable ASCII');
  checkMetadata(request.metadata);
  if (isGiven(request.previous_response_id) && isGiven(request.conversation)) throw invalid('previous_response_id', 'and conversation exclude each other');
  return request;
}

/** @throws Fault `invalid` for a key of more than 64 characters, or a value of more than 512; the schema checks the rest */
export function checkMetadata(metadata: Readonly<Record<string, Json>> | null | undefined): void {
  for (const [key, value] of Object.entries(metadata ?? {})) {
    if (key.length > 64) throw invalid('metadata', 'must have keys of at most 64 characters');
    if (leastLength(value) > mostOfValue || inText(value).length > mostOfValue) throw invalid(`metadata.${key}`, `must have at most ${mostOfValue} characters`);
  }
}

/** Characters of a value of metadata. */
const mostOfValue = 512;

/** How long a value is as JSON, at the least: nothing more is read of one that is too long. */
function leastLength(value: Json): number {
  if (typeof value === 'string') return value.length;
  let length = 1;
  if (value === null || typeof value !== 'object') return length;
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) if ((length += leastLength(item)) > mostOfValue) break;
  } else {
    const members = value as JsonObject;
    for (const name in members) if ((length += name.length + leastLength(members[name]!)) > mostOfValue) break;
  }
  return length;
}

/** Metadata as providers take it: what is no text is sent as its JSON. */
const inTexts = (metadata: Readonly<Record<string, Json>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, inText(value)]));

const inText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Checks items outside of a request, such as those added to a conversation. @throws Fault `invalid` */
export function itemsOf(items: unknown): readonly WireItem[] {
  checkTypes(items, 'items');
  const { items: list } = checkItems({ items });
  if (typeof list === 'string') throw invalid('items', 'must be an array');
  return list;
}

/** What is stored may be gone on with as it is. */
function withInput(body: unknown): unknown {
  if (!isObject(body) || isGiven(body['input'])) return body;
  return isGiven(body['previous_response_id']) || isGiven(body['conversation']) ? { ...body, input: [] } : body;
}

/** A reference to an item may be its id alone. */
function withReferences(body: unknown): unknown {
  if (!isObject(body) || !Array.isArray(body['input']) || !body['input'].some(isBareId)) return body;
  return { ...body, input: body['input'].map((item: unknown) => (isBareId(item) ? { ...item, type: 'item_reference' } : item)) };
}

const isBareId = (item: unknown): item is object =>
  isObject(item) && isGiven(item['id']) && Object.entries(item).every(([name, value]) => name === 'id' || !isGiven(value));

/** A message and a reference may omit their type; every other item has one. */
function checkTypes(items: unknown, field: string): void {
  if (!Array.isArray(items)) return;
  items.forEach((item: unknown, at) => {
    if (isObject(item) && isGiven(item['type']) && typeof item['type'] !== 'string') throw invalid(`${field}[${at}].type`, 'must be a string');
  });
}

/** Fields that the call has a member for, or that the gateway handles itself. All others are carried. */
const understood: ReadonlySet<string> = new Set(
  (
    'model input instructions previous_response_id conversation tools tool_choice parallel_tool_calls temperature top_p presence_penalty ' +
    'frequency_penalty top_logprobs max_output_tokens reasoning text include store background stream stream_options'
  ).split(' '),
);

/**
 * A request → call.
 * @param turns the whole conversation without the request's instructions: the stored turns that it continues, and its input
 * @throws Fault `invalid`, naming the field as the client spelled it
 */
export function callOf(request: ResponsesRequest, turns: readonly Turn[]): GenerateCall {
  const tools = withListed(declaredTools(request.tools?.flatMap(toolsOf) ?? [], turns.flatMap(toolsOfItem)), turns);
  const { toolChoice, ...choice } = toolChoiceOf(request.tool_choice, tools);
  const instructions = instructionsTurn(request);
  const endUser = request.safety_identifier ?? request.user;
  if (instructions.length + turns.length === 0) throw invalid('input', 'must not be empty');
  return {
    dialect,
    model: request.model,
    turns: [...instructions, ...orderTurns(withoutSteps(turns))],
    tools,
    ...(toolChoice ? { toolChoice } : {}),
    ...(isGiven(request.parallel_tool_calls) ? { parallelToolCalls: request.parallel_tool_calls } : {}),
    ...(isGiven(request.max_tool_calls) ? { mostToolCalls: request.max_tool_calls } : {}),
    output: outputOf(request.text?.format),
    sampling: samplingOf(request),
    ...(isGiven(request.reasoning?.effort) ? { reasoning: { effort: request.reasoning.effort } } : {}),
    stream: request.stream ?? false,
    ...(endUser ? { endUser } : {}),
    ...askedTier(request.service_tier),
    ...otherServersOf(request, turns),
    extra: extraOf(request, choice),
    ...(isGiven(request.metadata) ? { kept: ['metadata'] } : {}), // with the response
  };
}

const toolsOfItem = ({ role, parts }: Turn) =>
  role === 'user' ? parts.flatMap((part) => (part.type === 'foreign' && part.dialect === dialect ? toolsInItem(part.value) : [])) : [];

function instructionsTurn({ instructions }: ResponsesRequest): readonly Turn[] {
  return isGiven(instructions) && instructions !== ''
    ? [{ role: 'system', parts: [{ type: 'text', text: instructions }], extra: { [dialect]: { '.instructions': true } } }]
    : [];
}

function samplingOf(request: ResponsesRequest): Sampling {
  const sampling: { -readonly [Key in keyof Sampling]: Sampling[Key] } = {};
  if (isGiven(request.temperature)) sampling.temperature = request.temperature;
  if (isGiven(request.top_p)) sampling.topP = request.top_p;
  if (isGiven(request.max_output_tokens)) sampling.maxTokens = request.max_output_tokens;
  if (isGiven(request.frequency_penalty)) sampling.frequencyPenalty = request.frequency_penalty;
  if (isGiven(request.presence_penalty)) sampling.presencePenalty = request.presence_penalty;
  if (request.top_logprobs || request.include?.includes('message.output_text.logprobs')) sampling.logprobs = request.top_logprobs ?? 0;
  return sampling;
}

type Format = NonNullable<ResponsesRequest['text']>['format'];

function outputOf(format: Format): Output {
  if (format?.type === 'json_object') return { type: 'json' };
  if (format?.type !== 'json_schema') return { type: 'text' };
  const { name, description, schema, strict } = format;
  return {
    type: 'schema',
    schema: bounded(schema, 'text.format.schema'),
    name,
    ...(isGiven(description) ? { description } : {}),
    ...(isGiven(strict) ? { strict } : {}),
  };
}

/** What the gateway itself includes, whichever wire answers. */
const honoured: ReadonlySet<string> = new Set(['reasoning.encrypted_content', 'message.output_text.logprobs', 'web_search_call.action.sources']);

const effort: ReadonlySet<string> = new Set(['effort']);

/** Fields that only this dialect has, also for the chat dialect where both have them. Names with a leading dot are notes for providers of this wire. */
function extraOf(request: ResponsesRequest, { carried: toolChoice, asWritten }: Omit<Chosen, 'toolChoice'>): Extra {
  const carried: Record<string, Json> = carriedOf(request, understood);
  if (carried['truncation'] === 'disabled') delete carried['truncation'];
  if (isGiven(request.metadata)) carried['metadata'] = inTexts(request.metadata);
  if (toolChoice !== undefined) carried['tool_choice'] = toolChoice;
  if (asWritten !== undefined) carried['.tool_choice'] = asWritten;
  const { verbosity } = request.text ?? {};
  if (isGiven(verbosity)) carried['verbosity'] = verbosity;
  const reasoning = rest(request.reasoning ?? {}, effort);
  if (!isEmpty(reasoning)) carried['.reasoning'] = reasoning;
  if (isGiven(request.include) && request.include.length > 0) {
    carried['.include'] = request.include;
    const unknown = request.include.filter((one) => !honoured.has(one));
    if (unknown.length > 0) carried['include'] = unknown; // for the warnings of other wires
  }
  carryMembers(carried, request);
  const sister = membersWhere(carried, (name) => sisterFields.has(name));
  return { ...(isEmpty(carried) ? {} : { [dialect]: carried }), ...(isEmpty(sister) ? {} : { 'openai-chat': sister }) };
}

/** The members that these objects have. Others are carried by their paths. */
const members = {
  text: new Set(['format', 'verbosity']),
  format: new Set(['type', 'name', 'schema', 'description', 'strict']),
  reasoning: new Set(['effort', 'summary', 'generate_summary']),
  toolChoice: new Set(['type', 'name', 'namespace', 'mode', 'tools', 'server_label']),
  streamOptions: new Set(['include_usage', 'include_obfuscation']),
};

function carryMembers(carried: Record<string, Json>, { text, reasoning, tool_choice: choice, stream_options: streamOptions }: ResponsesRequest): void {
  carryUnknown(carried, 'text', text, members.text);
  carryUnknown(carried, 'text.format', text?.format, members.format);
  carryUnknown(carried, 'reasoning', reasoning, members.reasoning);
  carryUnknown(carried, 'tool_choice', choice, members.toolChoice);
  carryUnknown(carried, 'stream_options', streamOptions, members.streamOptions);
}
