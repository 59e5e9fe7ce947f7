import type { Quirks } from './quirks.ts';
import { isTranslated, type GenerateCall } from '#core/call';
import { withWholeAnswers } from '#core/whole-answers';
import type { Sampling } from '#core/sampling';
import { isWebSearch, webSearchName, type Tool, type ToolChoice, type Turn, type WebSearch } from '#core/conversation';
import { absent, ignoredIn } from '#core/capabilities';
import { isEmpty, membersWhere, own, withoutNotes, type Json, type JsonObject } from '#core/json';
import type { EncodedRequest } from '../../dialect.ts';
import { withAllResults } from '../../shared/answered-calls.ts';
import { withoutTrailingThoughts } from '../../shared/trailing-thoughts.ts';
import { isUserField } from '../../shared/end-user.ts';
import { encodedUser } from '../encode-user.ts';
import { ownFilesOf } from '../own-files.ts';
import { withSisterBreakpoints } from '../part-breakpoints.ts';
import { flatGrammar } from '../grammar.ts';
import { leftOut, unsupportedTerms } from '../../shared/web-search.ts';
import { possibleChoice } from '../../shared/tool-choice.ts';
import { encodeInput } from './encode-input.ts';
import { support } from './capabilities.ts';
import { plainRequest } from './plain-request.ts';
import { encodeReasoning, jsonWord, removeRefused, tokenLimit, withoutBreakpoints } from './model-fields.ts';
import { withUnknown } from '../../shared/nested-members.ts';
import { withinOutputLimit, type OutputLimit } from '../../shared/output-limit.ts';
import { isReasoning } from './thoughts.ts';
import { dialect, sisterFields } from './wire.ts';

const encrypted = 'reasoning.encrypted_content';
const withLogprobs = 'message.output_text.logprobs';

/**
 * Call → a responses request, with the whole conversation: nothing is stored upstream, so encrypted thoughts are requested. Except for `store` and `include`, a
 * field that the client did not send is not sent.
 * @param model the model's upstream name
 * @returns `ignored`: what this wire does not support, as `field: reason`
 */
export function encodeRequest(asked: GenerateCall, model: string, quirks: Quirks = {}, options: OutputLimit = {}): EncodedRequest {
  const plain = plainRequest(asked, model, quirks);
  if (plain) return plain;
  const { call, dropped } = withSisterBreakpoints(ownFilesOf(asked, dialect, quirks), dialect, quirks);
  const sister = membersWhere(own(call.extra, 'openai-chat'), (name) => sisterFields.has(name));
  const unknown = dropped.filter((name) => !(name in sister) && !isUserField(name, call));
  const ignored = new Set([...unknown.map((name) => `${name}: ${absent}`), ...ignoredIn(call, support)]);
  const notes = own(call.extra, dialect);
  const { verbosity, tool_choice: hostedChoice, ...carried } = { ...sister, ...withoutNotes(notes) };
  const user = encodedUser(call, carried);
  const writtenChoice = hostedChoice ?? (call.tools.some((tool) => tool.type === 'foreign' && tool.namespace) ? notes['.tool_choice'] : undefined);
  const { instructions, turns } = instructionsOf(withWholeAnswers(call));
  const tools = call.tools.flatMap((tool) => (isElsewhere(tool, quirks) ? [] : encodeTool(tool, isTranslated(call, dialect), ignored)));
  const isEquipped = call.tools.some(({ inItem }) => inItem) || tools.length > 0;
  const requested = [
    ...((notes['.include'] ?? []) as readonly Json[]),
    ...(call.sampling.logprobs === undefined ? [] : [withLogprobs]),
    ...sourcesOf(call, quirks),
  ];
  const include = [...new Set(quirks.encrypted === false ? requested.filter((one) => one !== encrypted) : [...requested, encrypted])];
  const { effort, reasoning } = encodeReasoning(call, quirks, ignored);
  const format = withUnknown(encodeOutput(call), 'text.format', notes, isTranslated(call, dialect) ? undefined : { type: 'text' });
  const text = withUnknown({ ...(format ? { format } : {}), ...(verbosity === undefined ? {} : { verbosity }) }, 'text', notes);
  const streamOptions = withUnknown({}, 'stream_options', notes);
  const possible = call.toolChoice && writtenChoice === undefined ? possibleChoice(call, { dialect, custom: true, search: true }, ignored) : undefined;
  const choice = writtenChoice ?? (possible && encodeToolChoice(possible, call.tools));
  const limited = withinOutputLimit(call, { quirks, options }, dialect, ignored);
  const body: Record<string, Json> = {
    ...carried,
    ...(user ? { user: user.user } : {}),
    model,
    ...(instructions === undefined ? {} : { instructions }),
    input: [...jsonWord(call), ...encodeInput(isTranslated(call, dialect) ? fitTurns(turns, ignored) : turns, ignored)],
    ...encodeSampling({ ...call.sampling, maxTokens: tokenLimit(limited, quirks.atLeast16 === true, ignored) }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(!isEquipped || choice === undefined ? {} : { tool_choice: withUnknown(choice, 'tool_choice', notes) }),
    ...(!isEquipped || call.parallelToolCalls === undefined ? {} : { parallel_tool_calls: call.parallelToolCalls }),
    ...(isEmpty(reasoning) ? {} : { reasoning }),
    ...(isEmpty(text) ? {} : { text }),
    ...(include.length === 0 ? {} : { include }),
    ...(isEmpty(streamOptions) ? {} : { stream_options: streamOptions }),
    store: false,
  };
  if (call.stream) body['stream'] = true;
  if (quirks.refused && isTranslated(call, dialect)) removeRefused(body, quirks.refused, effort, ignored);
  if (quirks.withoutBreakpoints) withoutBreakpoints(body, ignored);
  const isDecided = user?.decided !== undefined && body['user'] !== undefined;
  return { body, ignored: [...ignored], ...(isDecided ? { decided: [user.decided] } : {}) };
}

/** Clients of other wires are shown what was found. */
const sourcesOf = (call: GenerateCall, { sources }: Quirks): readonly string[] =>
  sources && isTranslated(call, dialect) && call.tools.some(isWebSearch) ? ['web_search_call.action.sources'] : [];

/** Separates the `instructions` of the request from the turns. */
function instructionsOf(turns: readonly Turn[]): { readonly instructions?: string; readonly turns: readonly Turn[] } {
  const [first, ...others] = turns;
  const [part] = first?.parts ?? [];
  if (!first || own(first.extra, dialect)['.instructions'] !== true || part?.type !== 'text') return { turns };
  return { instructions: part.text, turns: others };
}

function encodeSampling({ temperature, topP, maxTokens, logprobs }: Omit<Sampling, 'maxTokens'> & { readonly maxTokens: number | undefined }): JsonObject {
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
    ...(logprobs === undefined ? {} : { top_logprobs: logprobs }),
  };
}

function encodeOutput({ output }: GenerateCall): JsonObject | undefined {
  switch (output.type) {
    case 'text':
      return undefined;
    case 'json':
      return { type: 'json_object' };
    case 'schema': {
      const { name = 'answer', description, schema, strict } = output;
      const more = { ...(description === undefined ? {} : { description }), ...(strict === undefined ? {} : { strict }) };
      return { type: 'json_schema', name, schema, ...more };
    }
    default:
      return output satisfies never;
  }
}

/** Is the tool sent where the client declared it? What could not be read of that is lost where the rest is declared anew. */
const isElsewhere = (tool: Tool, { functionsOnly, withoutItems }: Quirks): boolean =>
  tool.inItem === true && !(tool.type === 'foreign' && tool.field !== undefined && (functionsOnly === true || withoutItems !== undefined));

function encodeTool(tool: Tool, translated: boolean, ignored: Set<string>): readonly JsonObject[] {
  switch (tool.type) {
    case 'function': {
      const { name, description, parameters, strict = translated ? false : undefined, extra } = tool;
      const described = { ...(description === undefined ? {} : { description }), parameters: parameters ?? noParameters };
      return [{ ...withoutNotes(own(extra, dialect)), type: 'function', name, ...described, ...(strict === undefined ? {} : { strict }) }];
    }
    case 'custom': {
      const { name, description, format, extra } = tool;
      const described = { ...(description === undefined ? {} : { description }), ...(format === undefined ? {} : { format: flatGrammar(format) }) };
      return [{ ...withoutNotes(own(extra, dialect)), type: 'custom', name, ...described }];
    }
    case 'foreign':
      if (tool.dialect === dialect && tool.field === undefined) return [tool.value];
      if (isWebSearch(tool)) {
        for (const one of unsupportedTerms(tool.search, ['allowed', 'unopened', 'near', 'contextSize'])) ignored.add(one);
        return [searchTool(tool.search)];
      }
      ignored.add(leftOut(tool));
      return [];
    default:
      return tool satisfies never;
  }
}

/** https://platform.openai.com/docs/guides/tools-web-search */
const searchTool = ({ allowed, unopened, near, contextSize }: WebSearch): JsonObject => ({
  type: 'web_search',
  ...(allowed ? { filters: { allowed_domains: allowed } } : {}),
  ...(unopened ? { external_web_access: false } : {}),
  ...(near ? { user_location: { type: 'approximate', ...near } } : {}),
  ...(contextSize === undefined ? {} : { search_context_size: contextSize }),
});

/** The wire requires parameters, and treats a schema without `strict` as strict, which clients of other wires do not mean. */
const noParameters = { type: 'object', properties: {} };

function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): Json {
  const hosted = (name: string) => name === webSearchName && !tools.some((tool) => tool.type !== 'foreign' && tool.name === name) && tools.find(isWebSearch);
  const named = (name: string): JsonObject => {
    const search = hosted(name);
    if (search) return { type: (search.type === 'foreign' && search.dialect === dialect && search.value['type']) || 'web_search' };
    return { type: tools.some((tool) => tool.type === 'custom' && tool.name === name) ? 'custom' : 'function', name };
  };
  switch (choice.type) {
    case 'auto':
    case 'none':
    case 'required':
      return choice.type;
    case 'tool':
      return named(choice.name);
    case 'allowed': {
      const { names, mode, unnamed = [] } = choice;
      const [only] = unnamed;
      if (only?.server && mode === 'required' && names.length + unnamed.length === 1) return only.value;
      return { type: 'allowed_tools', mode, tools: [...names.map(named), ...unnamed.map(({ value }) => value)] };
    }
    default:
      return choice satisfies never;
  }
}

/** The turns of another wire, as this one takes them. */
const fitTurns = (turns: readonly Turn[], ignored: Set<string>): readonly Turn[] =>
  withAllResults(withoutTrailingThoughts(turns, isReasoning), ignored).map(withoutEmpty);

/** A turn of the model without the empty text that clients send beside tool calls, which would be a message of its own, and with arguments that are JSON. */
function withoutEmpty(turn: Turn): Turn {
  if (turn.role !== 'model' || !turn.parts.some(({ type }) => type === 'tool-call')) return turn;
  const parts = turn.parts.filter((part) => part.type !== 'text' || part.text !== '');
  return { ...turn, parts: parts.map((part) => (part.type === 'tool-call' && !part.custom && part.json.trim() === '' ? { ...part, json: '{}' } : part)) };
}
