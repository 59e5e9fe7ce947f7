import { maxTokensName, type Quirks } from './quirks.ts';
import { isTranslated, type GenerateCall } from '#core/call';
import { withWholeAnswers } from '#core/whole-answers';
import type { Sampling } from '#core/sampling';
import type { MediaPart, Part, TextPart, Tool, ToolChoice, Turn } from '#core/conversation';
import { absent, ignoredIn } from '#core/capabilities';
import { isObject, own, textOf, withoutNotes, type Json, type JsonObject } from '#core/json';
import { isLoss } from '../../shared/lost-thoughts.ts';
import type { EncodedRequest } from '../../dialect.ts';
import { withAllResults } from '../../shared/answered-calls.ts';
import { leftOut } from '../../shared/web-search.ts';
import { allowedAlone, possibleChoice } from '../../shared/tool-choice.ts';
import { searchOptions } from './decode-tools.ts';
import { adaptedTurns } from './adapt-turns.ts';
import { sentEffort } from './efforts.ts';
import { acceptedChoice } from './forced-choice.ts';
import { encodeFunctions, hasOlderFunctions } from './older-functions.ts';
import { encodeOutput, instructed } from './encode-output.ts';
import { removeRefused } from './optional-fields.ts';
import { inRoleOrder, withStrings } from './message-shape.ts';
import { bridged, hasResultMedia, resultsBehindCalls } from './order-messages.ts';
import { isUserField } from '../../shared/end-user.ts';
import { ownFilesOf } from '../own-files.ts';
import { withSisterBreakpoints } from '../part-breakpoints.ts';
import { encodedUser } from '../encode-user.ts';
import { textFilesAsText } from '../../shared/text-files.ts';
import { encodeToolCall, isOlderCall } from './encode-answer.ts';
import { supports } from './capabilities.ts';
import { nameOf, nothingLeft } from '../part-names.ts';
import { encodeMedia } from './media.ts';
import { detailsIn } from './reasoning-details.ts';
import { withThoughts } from './returned-thoughts.ts';
import { withUnknown } from '../../shared/nested-members.ts';
import { withinOutputLimit, type OutputLimit } from '../../shared/output-limit.ts';
import { dialect, imageNote } from './wire.ts';

/**
 * Call → a chat completion request. A field that the client did not send is not sent.
 * @param model the model's upstream name
 * @returns `ignored`: what this wire does not support, as `field: reason`
 */
export function encodeRequest(asked: GenerateCall, model: string, quirks: Quirks = {}, options: OutputLimit = {}): EncodedRequest {
  const translated = isTranslated(asked, dialect);
  const { call, dropped } = withSisterBreakpoints(translated ? ownFilesOf(textFilesAsText(asked), dialect, quirks) : asked, dialect, quirks);
  const ignored = new Set(dropped.flatMap((name) => (isUserField(name, call) ? [] : [`${name}: ${absent}`])));
  if (translated) for (const one of ignoredIn(call, supports(quirks))) ignored.add(one);
  const { sampling } = withinOutputLimit(call, { quirks, options }, dialect, ignored);
  const notes = own(call.extra, dialect);
  const { stream_options: streamOptions, ...carried } = fieldsOf(notes);
  const output = encodeOutput(call, quirks);
  if (output.warning !== undefined) ignored.add(output.warning);
  const turns = translated ? withAllResults(withWholeAnswers(call), ignored) : call.turns;
  const said = placed(instructed(encodeMessages(adaptedTurns({ ...call, turns }, quirks), ignored), output.instruction), call, quirks, ignored);
  const messages = translated && quirks.stringContent ? withStrings(said) : said;
  const format = formatOf(output.format, notes, translated);
  const body: Record<string, Json> = {
    ...carried,
    model,
    messages: withThoughts(messages, quirks.thoughts, ignored),
    ...encodeSampling(translated ? withFewStops(sampling, quirks, ignored) : sampling, maxTokensName(call, quirks), quirks.seedField),
    ...(hasOlderFunctions(call) && !translated ? encodeFunctions(call) : {}),
    ...encodeTools(call, quirks, ignored),
    ...(format ? { response_format: format } : {}),
  };
  const user = encodedUser(call, carried);
  if (user) body['user'] = user.user;
  const topK = translated && quirks.topK !== true ? undefined : call.sampling.topK;
  if (topK !== undefined) body['top_k'] = topK;
  const effort = sentEffort(call, quirks);
  if (effort.warning !== undefined) ignored.add(effort.warning);
  if (effort.effort !== undefined) body['reasoning_effort'] = effort.effort;
  if (call.stream) {
    body['stream'] = true;
    if (quirks.usage !== false) body['stream_options'] = { ...(streamOptions as JsonObject | undefined), include_usage: true };
    else for (const name of Object.keys(streamOptions ?? {})) ignored.add(`stream_options.${name}: the provider accepts no stream options.`);
  }
  if (translated && quirks.refused) removeRefused(body, quirks.refused, effort, ignored);
  const isAsked = output.instruction !== undefined && output.format === undefined;
  const isDecided = user?.decided !== undefined && body['user'] !== undefined;
  return { body, ignored: [...ignored], ...(isDecided ? { decided: [user.decided] } : {}), ...(isAsked ? { unpromised: true } : {}) };
}

/** The messages as the provider accepts them in this order. */
function placed(given: readonly JsonObject[], call: GenerateCall, quirks: Quirks, ignored: Set<string>): readonly JsonObject[] {
  const { userAfterTool, prefix, roleOrder } = quirks;
  const translated = isTranslated(call, dialect);
  const messages = inRoleOrder(given, quirks, ignored);
  const wantsAnswer = userAfterTool === false || roleOrder === 'roles-alternate';
  const all = wantsAnswer && (translated || hasResultMedia(call)) ? bridged(messages) : messages;
  if (all.length > messages.length)
    ignored.add('messages: the provider wants an answer between a tool result and the next user message: a short one was added there.');
  const last = all.at(-1);
  return translated && prefix && last?.['role'] === 'assistant' && last['tool_calls'] === undefined ? [...all.slice(0, -1), { ...last, prefix: true }] : all;
}

/** Clients of this wire may have written more than it has, also in a format that is the default. */
function formatOf(format: JsonObject | undefined, notes: JsonObject, translated: boolean): JsonObject | undefined {
  const { json_schema: schema } = format ?? {};
  const whole = schema === undefined ? format : { ...format, json_schema: withUnknown(schema, 'response_format.json_schema', notes) };
  return withUnknown(whole, 'response_format', notes, translated ? undefined : { type: 'text' });
}

/** Notes of the dialect to itself are no fields; those of thinking keep the client's own spelling. */
const fieldsOf = (notes: JsonObject): JsonObject => {
  const { '.thinking': thinking, '.reasoning': reasoning } = notes;
  return {
    ...withoutNotes(notes),
    ...(thinking === undefined ? {} : { thinking }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
};

function encodeTools({ tools: all, ...call }: GenerateCall, quirks: Quirks, ignored: Set<string>): JsonObject {
  const { allowedTools = !isTranslated(call, dialect) } = quirks;
  const search = all.map(searchOptions).find((options) => options !== undefined);
  const searching = search === undefined ? {} : { web_search_options: search };
  const declared = hasOlderFunctions(call) ? [] : search === undefined ? all : all.filter((tool) => searchOptions(tool) === undefined);
  const choice = call.toolChoice && possibleChoice({ ...call, tools: declared }, { dialect, custom: true, search: false }, ignored);
  const asked = choice?.type === 'allowed' && !allowedTools ? allowedAlone(choice, declared) : { choice, tools: declared };
  const chosen = acceptedChoice(asked, call, quirks, ignored);
  const tools = chosen.tools.flatMap((tool) => encodeTool(tool, ignored));
  if (tools.length === 0) return searching;
  return {
    ...searching,
    tools,
    ...(chosen.choice ? { tool_choice: choiceWithUnknown(encodeToolChoice(chosen.choice, declared), own(call.extra, dialect)) } : {}),
    ...(call.parallelToolCalls === undefined ? {} : { parallel_tool_calls: call.parallelToolCalls }),
  };
}

function choiceWithUnknown(choice: Json, notes: JsonObject): Json {
  if (!isObject(choice)) return choice;
  const whole: Record<string, Json> = { ...choice };
  for (const name of ['function', 'custom', 'allowed_tools']) if (name in whole) whole[name] = withUnknown(whole[name]!, `tool_choice.${name}`, notes);
  return withUnknown(whole, 'tool_choice', notes);
}

/** OpenAI accepts up to four stop sequences. https://platform.openai.com/docs/api-reference/chat/create */
function withFewStops(sampling: Sampling, { mostStops = 4 }: Quirks, ignored: Set<string>): Sampling {
  if (sampling.stop === undefined || sampling.stop.length <= mostStops) return sampling;
  ignored.add(`stop: the provider accepts up to ${mostStops} sequences, so only the first ones are sent.`);
  return { ...sampling, stop: sampling.stop.slice(0, mostStops) };
}

function encodeSampling(sampling: Sampling, maxTokensField: string, seedField: string = 'seed'): JsonObject {
  const { temperature, topP, maxTokens, frequencyPenalty, presencePenalty, candidates, seed, stop, logprobs, logitBias } = sampling;
  const fields: Record<string, Json> = {};
  if (temperature !== undefined) fields['temperature'] = temperature;
  if (topP !== undefined) fields['top_p'] = topP;
  if (maxTokens !== undefined) fields[maxTokensField] = maxTokens;
  if (frequencyPenalty !== undefined) fields['frequency_penalty'] = frequencyPenalty;
  if (presencePenalty !== undefined) fields['presence_penalty'] = presencePenalty;
  if (candidates !== undefined) fields['n'] = candidates;
  if (seed !== undefined) fields[seedField] = seed;
  if (stop !== undefined) fields['stop'] = stop;
  if (logprobs !== undefined) fields['logprobs'] = true;
  if (logprobs) fields['top_logprobs'] = logprobs;
  if (logitBias !== undefined) fields['logit_bias'] = logitBias;
  return fields;
}

function encodeTool(tool: Tool, ignored: Set<string>): readonly JsonObject[] {
  switch (tool.type) {
    case 'function': {
      const { name, description, parameters, strict } = tool;
      const { function: inner, '.innerBreakpoint': isInner, ...outer } = own(tool.extra, dialect);
      const { cache_control, ...others } = outer;
      const described = {
        ...(isInner && cache_control !== undefined ? { cache_control } : {}),
        ...(description === undefined ? {} : { description }),
        ...(parameters === undefined ? {} : { parameters }),
        ...(strict === undefined ? {} : { strict }),
      };
      return [{ ...(isInner ? others : outer), type: 'function', function: { ...(inner as JsonObject | undefined), name, ...described } }];
    }
    case 'custom': {
      const { name, description, format } = tool;
      return [{ type: 'custom', custom: { name, ...(description === undefined ? {} : { description }), ...(format === undefined ? {} : { format }) } }];
    }
    case 'foreign':
      if (tool.dialect === dialect) return [tool.value];
      ignored.add(leftOut(tool));
      return [];
    default:
      return tool satisfies never;
  }
}

/** @param tools those of the call: a choice includes the kind of the tool that it names */
export function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): Json {
  const named = (name: string) => {
    const type = tools.some((tool) => tool.type === 'custom' && tool.name === name) ? 'custom' : 'function';
    return { type, [type]: { name } };
  };
  switch (choice.type) {
    case 'auto':
    case 'none':
    case 'required':
      return choice.type;
    case 'tool':
      return named(choice.name);
    case 'allowed':
      return { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools: choice.names.map(named) } };
    default:
      return choice satisfies never;
  }
}

// ——— messages ———

/** The wire refuses a request without messages: where nothing of the conversation can be sent, the user says a full stop. */
function encodeMessages(turns: readonly Turn[], ignored: Set<string>): readonly JsonObject[] {
  const messages = resultsBehindCalls(turns.flatMap((turn) => encodeTurn(turn, ignored)));
  return messages.length > 0 ? messages : [{ role: 'user', content: '.' }];
}

function encodeTurn(turn: Turn, ignored: Set<string>): readonly JsonObject[] {
  const { '.role': role = '', '.name': name, ...carried } = own(turn.extra, dialect);
  switch (turn.role) {
    case 'system':
      if (turn.parts.length === 0) return []; // it changes a configuration that this wire does not have
      return [{ role: role || 'system', ...carried, content: encodeContent(textsOf(turn.parts, ignored), ignored) }];
    case 'user':
      return encodeUser(turn.parts, name === undefined ? carried : { ...carried, name }, ignored, role === 'function');
    case 'model':
      return encodeModel(turn.parts, carried, ignored);
    default:
      return turn.role satisfies never;
  }
}

/** Text, and what a client of this wire sent. */
const isSaid = (part: Part): boolean => part.type === 'text' || (part.type === 'foreign' && part.dialect === dialect);

/** A system message has text only. */
function textsOf(parts: readonly Part[], ignored: Set<string>): readonly Part[] {
  for (const part of parts) if (!isSaid(part) && part.type !== 'text') ignored.add(`${nameOf(part)}: the provider's API accepts none in a system message.`);
  return parts.filter(isSaid);
}

/** Tool results are separate messages before the user's other content. Their media follow in the user message: a tool message is text only. */
function encodeUser(parts: readonly Part[], carried: JsonObject, ignored: Set<string>, older: boolean): readonly JsonObject[] {
  const messages: JsonObject[] = [];
  const userParts: Part[] = [];
  for (const part of parts) {
    if (part.type !== 'tool-result') {
      userParts.push(part);
      continue;
    }
    const texts = part.parts.filter(isSaid);
    userParts.push(...part.parts.filter((one) => !isSaid(one)));
    if (part.failed) ignored.add("tool result: the provider's interface has no mark for one that failed.");
    const content = encodeContent(texts, ignored);
    const others = { ...carried, ...own(part.extra, dialect) };
    messages.push(older ? { ...others, role: 'function', content } : { ...others, role: 'tool', tool_call_id: part.id, content });
  }
  if (userParts.length === 0 && messages.length > 0) return messages;
  const content = encodeContent(userParts, ignored);
  if (content !== '' || userParts.length === 0 || userParts.some(isSaid))
    return [...messages, { ...(messages.length === 0 ? carried : {}), role: 'user', content }];
  if (messages.length === 0) throw nothingLeft(userParts);
  return messages;
}

function encodeModel(parts: readonly Part[], carried: JsonObject, ignored: Set<string>): readonly JsonObject[] {
  const texts = parts.filter(isSaid);
  const refusals = parts.filter((part) => part.type === 'refusal');
  const calls = parts.filter((part) => part.type === 'tool-call');
  const message: Record<string, Json> = { ...carried, role: 'assistant', content: texts.length > 0 ? encodeContent(texts, ignored) : null };
  if (refusals.length > 0) message['refusal'] = refusals.map((part) => part.text).join('');
  const images = parts.flatMap((part) => (part.type === 'media' && isAnswered(part) ? [encodeImage(part)] : []));
  if (images.length > 0) message['images'] = images;
  for (const part of parts) {
    if ((part.type === 'media' && !isAnswered(part)) || (part.type === 'foreign' && !isSaid(part)))
      ignored.add(`${nameOf(part)}: the provider's API accepts none in an assistant message.`);
    if (part.type !== 'thought') continue;
    const field = own(part.extra, dialect)['field'];
    if (typeof field === 'string') {
      if (part.text !== '') message[field] = textOf(message[field]) + part.text;
    } else if (isLoss(part)) ignored.add("thoughts: the provider's interface does not take back those of another.");
  }
  const details = detailsIn(parts);
  if (details.length > 0) message['reasoning_details'] ??= details; // unless the client returned them itself
  const older = calls.find(isOlderCall);
  if (older) message['function_call'] = { name: older.name, arguments: older.json };
  const newer = calls.filter((call) => call !== older);
  if (newer.length > 0) message['tool_calls'] = newer.map(encodeToolCall);
  return message['content'] === null && !answers.some((name) => name in message) ? [] : [message];
}

/** Is it an image of an answer that a client of this wire returns? */
const isAnswered = ({ extra }: MediaPart): boolean => own(extra, dialect)[imageNote] !== undefined;

function encodeImage({ extra, ...part }: MediaPart): JsonObject {
  return { ...(own(extra, dialect)[imageNote] as JsonObject), ...encodeMedia(part) };
}

/** A message of the assistant has content or one of these: thoughts alone are none. DeepSeek: `Invalid assistant message: content or tool_calls must be set` */
const answers = ['refusal', 'tool_calls', 'function_call', 'audio', 'images'];

/** A single plain text is a string, everything else a list of parts. */
function encodeContent(parts: readonly Part[], ignored: Set<string>): Json {
  const [first] = parts;
  if (first === undefined) return '';
  if (parts.length === 1 && first.type === 'text' && !first.extra?.[dialect]) return first.text;
  const content = parts.flatMap((part) => {
    if (part.type === 'text') return [encodeText(part)];
    if (part.type === 'foreign' && part.dialect === dialect) return [part.value];
    const media = part.type === 'media' ? encodeMedia(part) : undefined;
    if (!media) ignored.add(`${nameOf(part)}: the provider's API does not support it.`);
    return media ? [media] : [];
  });
  return content.length > 0 ? content : '';
}

const encodeText = ({ text, extra }: TextPart): JsonObject => ({ ...own(extra, dialect), type: 'text', text });
