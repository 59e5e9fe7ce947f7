import type { Quirks } from './quirks.ts';
import { isTranslated, type GenerateCall } from '#core/call';
import { isWebSearch, textTurn, type Tool, type ToolChoice, type Turn } from '#core/conversation';
import { absent, ignoredIn, noteOn } from '#core/capabilities';
import { isEmpty, own, type Extra, type JsonObject } from '#core/json';
import { droppedExtra } from '#core/dropped-extra';
import type { EncodedRequest } from '../dialect.ts';
import { jsonInstruction } from '../shared/json-instruction.ts';
import { leftOut, unsupportedTerms } from '../shared/web-search.ts';
import { possibleChoice } from '../shared/tool-choice.ts';
import { withUnknown } from '../shared/nested-members.ts';
import { describedSchema } from '../shared/read-fields.ts';
import { encodeConversation } from './encode-contents.ts';
import { encodeThinking } from './encode-thinking.ts';
import { support, supports } from './capabilities.ts';
import { plainRequest } from './plain-request.ts';
import { bareRefs } from './schema.ts';
import { withinOutputLimit, type OutputLimit } from '../shared/output-limit.ts';
import { dialect } from './wire.ts';

/**
 * Call → a content generation request. A field that the client did not send is not sent.
 * @param _model is part of the URL
 * @returns `ignored`: what this wire does not support, as `field: reason`
 */
export function encodeRequest(call: GenerateCall, _model: string, all: Quirks = {}, limits: OutputLimit = {}): EncodedRequest {
  const plain = plainRequest(call);
  if (plain) return plain;
  const translated = isTranslated(call, dialect);
  const quirks = translated ? all : ofOwnClients(all);
  const ignored = new Set([...droppedExtra(call, dialect).map((name) => `${name}: ${absent}`), ...ignoredIn(call, supports(quirks))]);
  const notes = own(call.extra, dialect);
  const carried = Object.fromEntries(Object.entries(notes).filter(([name]) => !/^(?:generationConfig|toolConfig)?\./.test(name)));
  const tools = encodeTools(call, translated, ignored);
  const instruction = quirks.jsonWithoutTools && tools.length > 0 ? jsonInstruction(call.output) : undefined;
  if (instruction !== undefined) ignored.add('response_format: this model is told of it in words, since it accepts no JSON mode beside tools.');
  const options = { ids: !quirks.withoutIds, signed: quirks.signed ?? false, isTranslated: translated, mediaBeside: quirks.mediaBesideResults ?? false };
  const turns = instruction === undefined ? call.turns : instructed(call.turns, instruction);
  const { system, contents } = encodeConversation(turns, options, ignored);
  const limited = withinOutputLimit(call, { quirks, options: limits }, dialect, ignored);
  const config = {
    ...membersOf('generationConfig', notes),
    ...(notes['.config'] as JsonObject | undefined),
    ...encodeSampling(limited, quirks, translated, ignored),
    ...(instruction === undefined ? encodeOutput(call, translated, ignored) : {}),
    ...encodeThinking(limited, quirks, ignored),
  };
  const choice = { ...membersOf('toolConfig', notes), ...encodeCalling(call, tools, ignored) };
  return {
    body: {
      ...carried,
      ...(system ? { systemInstruction: withUnknown({ role: 'user', parts: system }, 'systemInstruction', notes) } : {}),
      contents,
      ...(tools.length > 0 ? { tools } : {}),
      ...(isEmpty(choice) ? {} : { toolConfig: choice }),
      ...(isEmpty(config) ? {} : { generationConfig: config }),
    },
    ignored: [...ignored],
    ...(instruction === undefined ? {} : { unpromised: true }),
  };
}

/** The carried members of an object of the request: each has a note of its own, `generationConfig.speechConfig`. */
const membersOf = (name: string, notes: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(notes).flatMap(([path, value]) => {
      const member = path.startsWith(`${name}.`) ? path.slice(name.length + 1) : '';
      return member === '' || member.includes('.') ? [] : [[member, value]];
    }),
  );

/** What a client of this wire sent itself stays as it is. */
const ofOwnClients = ({ withoutPenalties: _penalties, jsonWithoutTools: _json, mediaBesideResults: _media, ...quirks }: Quirks): Quirks => quirks;

/** The instruction follows the system messages at the front. */
function instructed(turns: readonly Turn[], text: string): readonly Turn[] {
  const first = turns.findIndex(({ role }) => role !== 'system');
  const at = first < 0 ? turns.length : first;
  return turns.toSpliced(at, 0, textTurn('system', text));
}

function encodeSampling({ sampling }: GenerateCall, { withoutPenalties }: Quirks, translated: boolean, ignored: Set<string>): JsonObject {
  const { temperature, topP, topK, maxTokens, frequencyPenalty, presencePenalty, candidates, seed, stop, logprobs } = sampling;
  const fields = {
    temperature,
    topP,
    topK,
    candidateCount: candidates,
    maxOutputTokens: maxTokens,
    stopSequences: stopsOf(stop, translated, ignored),
    seed: seedOf(seed, ignored),
    ...(withoutPenalties ? {} : { presencePenalty, frequencyPenalty }),
    ...(logprobs === undefined ? {} : { responseLogprobs: true, ...(logprobs > 0 ? { logprobs } : {}) }),
  };
  return Object.fromEntries(Object.entries(fields).filter((field): field is [string, Exclude<(typeof field)[1], undefined>] => field[1] !== undefined));
}

/** https://ai.google.dev/api/generate-content#v1beta.GenerationConfig */
const mostStops = 5;

function stopsOf(stop: readonly string[] | undefined, translated: boolean, ignored: Set<string>): readonly string[] | undefined {
  if (!translated || stop === undefined || stop.length <= mostStops) return stop;
  ignored.add(`stop: the provider accepts ${mostStops} stop sequences.`);
  return stop.slice(0, mostStops);
}

/** The wire's seed has 32 bits. */
function seedOf(seed: number | undefined, ignored: Set<string>): number | undefined {
  if (seed === undefined || (seed >= -(2 ** 31) && seed < 2 ** 31)) return seed;
  ignored.add(noteOn('seed', support));
  return seed | 0;
}

function encodeOutput({ output, extra }: GenerateCall, translated: boolean, ignored: Set<string>): JsonObject {
  const { '.responseFormat': format, '.responseSchema': asItCame } = own(extra, dialect);
  if (format !== undefined) return { responseFormat: format };
  switch (output.type) {
    case 'text':
      return {};
    case 'json':
      return { responseMimeType: 'application/json' };
    case 'schema': {
      if (output.bare) return {}; // in its client's own words
      return {
        responseMimeType: 'application/json',
        ...(asItCame === undefined
          ? { responseJsonSchema: schemaOf(describedSchema(output.schema, output.description), 'response_format', translated, ignored) }
          : { responseSchema: asItCame }),
      };
    }
    default:
      return output satisfies never;
  }
}

/** All functions are declared in one tool; each provider tool is one of its own. */
function encodeTools({ tools, toolChoice, extra }: GenerateCall, translated: boolean, ignored: Set<string>): readonly JsonObject[] {
  const declaresAll = toolChoice?.type !== 'allowed' || isNamed(toolChoice, extra);
  const functions: JsonObject[] = [];
  const others: JsonObject[] = [];
  for (const tool of tools) {
    const encoded = encodeTool(tool, { translated, functions: tools.some(({ type }) => type === 'function') }, ignored);
    if (!encoded) continue;
    if (tool.type === 'foreign') others.push(encoded);
    // The API has no `auto` mode for a subset of the functions: only that subset is declared.
    else if (declaresAll || toolChoice.names.includes(tool.name)) functions.push(encoded);
  }
  return [...(functions.length > 0 ? [{ functionDeclarations: functions }] : []), ...others];
}

interface ToolContext {
  readonly translated: boolean;
  /** Whether there are any functions: most models accept no search beside them. */
  readonly functions: boolean;
}

function encodeTool(tool: Tool, { translated, functions }: ToolContext, ignored: Set<string>): JsonObject | undefined {
  switch (tool.type) {
    case 'function': {
      const { '.parameters': asItCame, ...carried } = own(tool.extra, dialect);
      const { name, description, parameters, strict } = tool;
      if (strict) ignored.add("strict: the provider's interface has no strict tools.");
      const schema =
        asItCame !== undefined ? { parameters: asItCame } : parameters ? { parametersJsonSchema: schemaOf(parameters, 'tools', translated, ignored) } : {};
      return { ...carried, name, ...(description === undefined ? {} : { description }), ...schema };
    }
    case 'custom':
      ignored.add(noteOn('tools', support));
      return undefined;
    case 'foreign':
      if (tool.dialect === dialect) return tool.value;
      if (isWebSearch(tool) && !functions) {
        for (const one of unsupportedTerms(tool.search, [])) ignored.add(one);
        return { googleSearch: {} };
      }
      ignored.add(leftOut(tool));
      return undefined;
    default:
      return tool satisfies never;
  }
}

/** A client of this wire knows what the wire accepts. @param field of the chat interface, for a warning */
function schemaOf(schema: JsonObject, field: string, translated: boolean, ignored: Set<string>): JsonObject {
  const bare = translated ? bareRefs(schema) : schema;
  if (bare !== schema) ignored.add(`${field}: the provider accepts nothing beside $ref in a schema.`);
  return bare;
}

/** The wire refuses it where there are no functions. https://github.com/UKGovernmentBEIS/inspect_ai/issues/2462 */
function encodeCalling(call: GenerateCall, tools: readonly JsonObject[], ignored: Set<string>): { readonly functionCallingConfig?: JsonObject } {
  const choice = call.toolChoice && possibleChoice(call, { dialect, custom: false, search: false }, ignored);
  if (tools.some((tool) => tool['functionDeclarations'] !== undefined)) {
    const calling = { ...membersOf('toolConfig.functionCallingConfig', own(call.extra, dialect)), ...encodeChoice(choice, call) };
    return isEmpty(calling) ? {} : { functionCallingConfig: calling };
  }
  if (tools.length > 0 && choice?.type === 'required') ignored.add('tool_choice: the provider decides itself when it searches.');
  return {};
}

function encodeChoice(choice: ToolChoice | undefined, { extra }: GenerateCall): JsonObject {
  if (!choice) return {};
  switch (choice.type) {
    case 'auto':
      return { mode: isValidated(extra) ? 'VALIDATED' : 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'tool':
      return { mode: 'ANY', allowedFunctionNames: [choice.name] };
    case 'allowed':
      if (!isNamed(choice, extra)) return { mode: 'AUTO' };
      return { mode: choice.mode === 'auto' ? 'VALIDATED' : 'ANY', allowedFunctionNames: choice.names };
    default:
      return choice satisfies never;
  }
}

const isValidated = (extra: Extra | undefined): boolean => own(extra, dialect)['.validated'] === true;

/** Are the allowed functions named beside the others? */
const isNamed = ({ mode }: { readonly mode: 'auto' | 'required' }, extra: Extra | undefined): boolean => mode === 'required' || isValidated(extra);
