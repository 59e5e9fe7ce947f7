import type { Quirks } from './quirks.ts';
import { type GenerateCall, isTranslated } from '#core/call';
import { withWholeAnswers } from '#core/whole-answers';
import { type CustomTool, type ForeignTool, type FunctionTool, isWebSearch, type ToolChoice, webSearchName } from '#core/conversation';
import { absent, ignoredIn, noteOn } from '#core/capabilities';
import { type Extra, isEmpty, type Json, type JsonObject, withoutNotes, own } from '#core/json';
import { droppedExtra } from '#core/dropped-extra';
import type { EncodedRequest } from '../dialect.ts';
import { withAllResults } from '../shared/answered-calls.ts';
import { withOwnIds } from '../shared/own-ids.ts';
import { isUserField, sentUser } from '../shared/end-user.ts';
import { leftOut, unsupportedTerms } from '../shared/web-search.ts';
import { adaptedSchema, type SchemaLimits } from '../shared/adapted-schema.ts';
import { jsonInstruction } from '../shared/json-instruction.ts';
import { isForced, possibleChoice } from '../shared/tool-choice.ts';
import { withUnknown } from '../shared/nested-members.ts';
import { describedSchema } from '../shared/read-fields.ts';
import { withSingleResults, withUniqueIds } from './call-ids.ts';
import { encodeConversation } from './encode-conversation.ts';
import { cacheBreakpoint, isSignedThought, type Notes } from './encode-messages.ts';
import { withFewBreakpoints } from './cache-breakpoints.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { withoutMembers } from './newer-members.ts';
import { support, supports } from './capabilities.ts';
import { plainRequest } from './plain-request.ts';
import type { RequestOptions } from './request-options.ts';
import { withoutTrailingThoughts } from '../shared/trailing-thoughts.ts';
import { outputLimit, withinOutputLimit } from '../shared/output-limit.ts';
import { dialect } from './wire.ts';

/** Output tokens where neither the client nor the settings have a limit: every current model accepts this value. */
const defaultTokens = 8192;

/** Output tokens left for the answer above a thinking budget. */
const answerTokens = 4096;

/**
 * Call → a message request. A field that the client did not send is not sent, except `max_tokens`, which this wire requires.
 * @param model the model's upstream name
 * @returns `ignored`: what this wire does not support, as `field: reason`
 * @throws Fault `invalid` where nothing of a message can be sent
 */
export function encodeRequest(asked: GenerateCall, model: string, quirks: Quirks = {}, options: RequestOptions = {}): EncodedRequest {
  const plain = plainRequest(asked, model, quirks, options);
  if (plain) return plain;
  const ignored = new Set([...droppedFields(asked), ...ignoredIn(asked, supports(quirks))]);
  const maxOutputTokens = outputLimit(quirks, options);
  const call = withinOutputLimit(asked, { quirks, options }, dialect, ignored);
  const translated = isTranslated(call, dialect);
  const notes: Notes = { ignored, isTranslated: translated, lost: undefined, hasBreakpoint: false };
  const ownFields = own(call.extra, dialect);
  const carried = withoutNotes(ownFields);
  const { choice, demand } = choiceOf(call, quirks, ignored);
  const tools = encodeTools(call, choice, quirks, notes);
  const toolChoice = encodeToolChoice(choice, call);
  const { format, instruction, unpromised } = encodeOutput(call, quirks, ignored);
  const instructions = [demand, instruction].filter((one) => one !== undefined);
  const { system, messages } = encodeConversation({ ...quirks, turns: translated ? fitTurns(call, ignored) : distinct(call.turns), instructions }, notes);
  const limit = call.sampling.maxTokens;
  const { thinking, effort, budget } = encodeReasoning(call, limit ?? maxOutputTokens, quirks, ignored);
  const maxTokens = limit ?? maxOutputTokens ?? Math.max(defaultTokens, budget + answerTokens);
  const decided: string[] = [];
  if (limit === undefined && maxOutputTokens === undefined)
    decided.push(`max_tokens: the provider requires a limit and none is known for this model, so ${maxTokens} is sent.`);
  const body: Record<string, Json> = {
    ...carried,
    ...cacheBreakpoint(foreignExtra(call), notes),
    model,
    max_tokens: maxTokens,
    messages,
    ...(system === undefined ? {} : { system }),
    ...encodeSampling(call, thinking, quirks, ignored),
    ...(tools.length > 0 ? { tools, ...(toolChoice ? { tool_choice: withUnknown(toolChoice, 'tool_choice', ownFields) } : {}) } : {}),
    ...(thinking ? { thinking } : {}),
    ...(translated ? encodeUser(call, quirks, ignored, decided) : {}),
  };
  if (options.caching === 'auto' && !notes.hasBreakpoint && !quirks.withoutCaching && body['cache_control'] === undefined)
    body['cache_control'] = { type: 'ephemeral' };
  const config = withUnknown({ ...(effort ? { effort } : {}), ...(format ? { format } : {}) }, 'output_config', ownFields);
  if (!isEmpty(config)) body['output_config'] = config;
  if (call.stream) body['stream'] = true;
  const few = translated && notes.hasBreakpoint ? withFewBreakpoints(body, ignored) : body;
  const sent = quirks.withoutMembers ? withoutMembers(few, quirks.withoutMembers, ignored) : few;
  return {
    body: sent,
    ignored: [...ignored],
    ...(decided.length > 0 ? { decided } : {}),
    ...(unpromised === undefined ? {} : { unpromised }),
  };
}

/** A client may have the ids that another provider, or an older gateway, repeated. */
const distinct = (turns: GenerateCall['turns']) => withUniqueIds(withOwnIds(turns));

/** The turns of a call of another wire, as this one takes them. */
const fitTurns = (call: GenerateCall, ignored: Set<string>): GenerateCall['turns'] =>
  withAllResults(withSingleResults(distinct(withoutTrailingThoughts(withWholeAnswers(call), isSignedThought))), ignored);

/** Cache breakpoints and the client's own user have a place in this wire, whoever set them. */
const droppedFields = (call: GenerateCall): readonly string[] =>
  droppedExtra(call, dialect)
    .filter((name) => name !== 'cache_control' && !isUserField(name, call))
    .map((name) => `${name}: ${absent}`);

/** https://github.com/BerriAI/litellm/issues/10106, https://platform.claude.com/docs/en/api/messages */
const userRules = { longest: 256, refused: /@|^\+?[\d\s().-]{7,}$/ };

function encodeUser({ endUser }: GenerateCall, { withoutUser }: Quirks, ignored: Set<string>, decided: string[]): { readonly metadata?: JsonObject } {
  if (endUser === undefined) return {};
  if (withoutUser) {
    ignored.add('user: the provider does not accept it.');
    return {};
  }
  const sent = sentUser(endUser, userRules);
  if (sent.decided !== undefined) decided.push(sent.decided);
  return { metadata: { user_id: sent.user } };
}

/** What other dialects carry of the call itself. */
const foreignExtra = ({ extra: { [dialect]: _, ...others } }: GenerateCall): Extra => others;

/** With thinking enabled, the wire accepts no temperature but 1 and no top_k. */
function encodeSampling(call: GenerateCall, thinking: JsonObject | undefined, { without = [], eitherSampling }: Quirks, ignored: Set<string>): JsonObject {
  const { sampling, extra } = call;
  const { temperature, topP, topK, stop } = sampling;
  const fields: Record<string, Json> = {};
  const thinks = thinking !== undefined && thinking['type'] !== 'disabled' && own(extra, dialect)['.thinking'] === undefined;
  const isBoth = temperature !== undefined && topP !== undefined && eitherSampling === true && isTranslated(call, dialect);
  const spare = isBoth ? (temperature === 1 ? 'temperature' : 'top_p') : undefined;
  const set = (name: 'temperature' | 'top_p' | 'top_k', value: number | undefined) => {
    if (value === undefined || without.includes(name)) return;
    if (thinks && value !== 1) ignored.add(`${name}: the provider does not accept it for a model that thinks.`);
    else if (name === spare) ignored.add(`${name}: this model accepts either temperature or top_p, not both.`);
    else fields[name] = value;
  };
  if (temperature !== undefined && temperature > 1) ignored.add(noteOn('temperature', support));
  set('temperature', temperature === undefined ? undefined : Math.min(1, temperature));
  set('top_p', topP);
  set('top_k', topK);
  const stops = stop?.filter((one) => one.trim() !== '') ?? [];
  if (stop && stops.length < stop.length) ignored.add(noteOn('stop', support));
  if (stops.length > 0) fields['stop_sequences'] = stops;
  return fields;
}

interface EncodedOutput {
  readonly format?: JsonObject;
  /** For the system text. */
  readonly instruction?: string | undefined;
  readonly unpromised?: boolean;
}

function encodeOutput(call: GenerateCall, { withoutFormat, thisCall }: Quirks, ignored: Set<string>): EncodedOutput {
  const { output, extra } = call;
  if (output.type === 'text') return {};
  const translated = isTranslated(call, dialect);
  if (output.type === 'schema' && !translated)
    return { format: { ...(own(extra, dialect)['.format'] as JsonObject | undefined), type: 'json_schema', schema: output.schema } };
  const isRefused = withoutFormat === true || thisCall?.format !== undefined;
  const adapted = output.type === 'schema' && !isRefused ? adaptedSchema(describedSchema(output.schema, output.description), schemaLimits()) : undefined;
  if (adapted) return { format: { type: 'json_schema', schema: adapted.schema }, unpromised: adapted.isLooser };
  ignored.add(noteOn('response_format', support));
  return { instruction: jsonInstruction(output), unpromised: true };
}

function encodeTools(call: GenerateCall, choice: ToolChoice | undefined, quirks: Quirks, notes: Notes): readonly JsonObject[] {
  const limits = schemaLimits();
  return call.tools.flatMap((tool) => {
    if (choice?.type === 'allowed' && tool.type === 'function' && !choice.names.includes(tool.name)) return [];
    if (tool.type !== 'function') return encodeOtherTool(tool, notes.ignored);
    const { name, description } = tool;
    return [
      {
        ...own(tool.extra, dialect),
        ...cacheBreakpoint(tool.extra, notes),
        name,
        ...(description === undefined ? {} : { description }),
        ...(notes.isTranslated ? strictSchema(tool, limits, quirks, notes.ignored) : ownSchema(tool)),
      },
    ];
  });
}

const ownSchema = ({ parameters = {}, strict }: FunctionTool): JsonObject => ({
  input_schema: { ...parameters, type: 'object' },
  ...(strict === undefined ? {} : { strict }),
});

/** A tool is strict only with a schema that the provider can enforce. */
function strictSchema(tool: FunctionTool, limits: SchemaLimits, { withoutStrict, thisCall }: Quirks, ignored: Set<string>): JsonObject {
  const { strict, parameters = {} } = tool;
  if (!strict) return withoutStrict ? { input_schema: { ...parameters, type: 'object' } } : ownSchema(tool);
  const isRefused = withoutStrict === true || thisCall?.strict !== undefined;
  const adapted = isRefused ? undefined : adaptedSchema({ ...parameters, type: 'object' }, limits);
  const shown = tool.name.slice(0, 64);
  if (!adapted) {
    ignored.add(`strict: the provider cannot enforce the schema of the tool ${shown}.`);
    return { input_schema: { ...parameters, type: 'object' } };
  }
  if (adapted.isLooser) ignored.add(`strict: some bounds in the schema of the tool ${shown} are told to the model and not enforced.`);
  return { input_schema: adapted.schema, strict };
}

function encodeOtherTool(tool: CustomTool | ForeignTool, ignored: Set<string>): readonly JsonObject[] {
  switch (tool.type) {
    case 'custom':
      ignored.add(noteOn('tools', support));
      return [];
    case 'foreign':
      if (tool.dialect === dialect) return [tool.value];
      if (isWebSearch(tool)) {
        const { allowed, blocked, most, near } = tool.search; // the wire accepts only one of the two lists
        for (const one of unsupportedTerms(tool.search, allowed ? ['allowed', 'most', 'near'] : ['blocked', 'most', 'near'])) ignored.add(one);
        const bound = allowed ? { allowed_domains: allowed } : blocked ? { blocked_domains: blocked } : {};
        const place = near ? { user_location: { type: 'approximate', ...near } } : {};
        return [{ type: 'web_search_20250305', name: webSearchName, ...bound, ...(most === undefined ? {} : { max_uses: most }), ...place }];
      }
      ignored.add(leftOut(tool));
      return [];
    default:
      return tool satisfies never;
  }
}

interface Choice {
  readonly choice: ToolChoice | undefined;
  /** What the system text has to ask for in its place. */
  readonly demand?: string;
}

/** The choice that the model can be given. One that cannot be forced is asked to call the tool. https://github.com/can1357/oh-my-pi/issues/12939 */
function choiceOf(call: GenerateCall, { withoutForcedTools }: Quirks, ignored: Set<string>): Choice {
  const choice = call.toolChoice && possibleChoice(call, { dialect, custom: false, search: true }, ignored);
  if (!choice || !withoutForcedTools || !isForced(choice) || !isTranslated(call, dialect)) return { choice };
  ignored.add('tool_choice: this model cannot be forced to call a tool, so it is told to.');
  switch (choice.type) {
    case 'tool':
      return { choice: { type: 'allowed', names: [choice.name], mode: 'auto' }, demand: `You must call the tool ${choice.name} in this turn.` };
    case 'allowed':
      return { choice: { ...choice, mode: 'auto' }, demand: anyTool };
    default:
      return { choice: { type: 'auto' }, demand: anyTool };
  }
}

const anyTool = 'You must call at least one of the tools in this turn.';

/** The API has no choice among a subset of the tools: only that subset is declared. */
function encodeToolChoice(choice: ToolChoice | undefined, { parallelToolCalls }: GenerateCall): JsonObject | undefined {
  const alone = parallelToolCalls === undefined ? {} : { disable_parallel_tool_use: !parallelToolCalls };
  if (!choice) return parallelToolCalls === false ? { type: 'auto', ...alone } : undefined;
  switch (choice.type) {
    case 'none':
      return { type: 'none' };
    case 'auto':
      return { type: 'auto', ...alone };
    case 'required':
      return { type: 'any', ...alone };
    case 'tool':
      return { type: 'tool', name: choice.name, ...alone };
    case 'allowed':
      return { type: choice.mode === 'auto' ? 'auto' : 'any', ...alone };
    default:
      return choice satisfies never;
  }
}

/** What JSON Schemas of answers and of strict tools may say. https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations */
const keywords: ReadonlySet<string> = new Set(
  '$schema $ref $defs definitions type enum const anyOf allOf properties required items additionalProperties title description default'.split(' '),
);
const formats: ReadonlySet<string> = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']);

/** JSON values in the schemas of one request. */
const mostValues = 20_000;

/** @returns limits for the schemas of one request */
const schemaLimits = (): SchemaLimits => ({ keywords, formats, minItems: 1, left: mostValues });
