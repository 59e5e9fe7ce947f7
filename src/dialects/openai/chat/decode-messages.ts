import type { ForeignPart, MediaPart, Part, TextPart, Turn } from '#core/conversation';
import { isObject, rest, type Extra, type Json, type JsonObject } from '#core/json';
import { invalid, missing } from '#core/fault';
import { bounded, isGiven, nested } from '../../shared/read-fields.ts';
import { mediaOfAudio, mediaOfFile, mediaOfImage } from './media.ts';
import { carriedAs, dialect, imageNote, type ChatContentPart, type ChatMessage } from './wire.ts';

/** Messages → turns. Members of a message that are not understood are carried on its turn. */
export function turnsOf(messages: readonly ChatMessage[]): readonly Turn[] {
  const calls = new Set<string>(); // ids of the tool calls so far
  const functions = new Map<string, string>(); // legacy function calls: a function's name → the id generated for its last call
  return messages.map((message, at) => {
    const field = `messages[${at}]`;
    switch (message.role) {
      case 'system':
      case 'developer':
        return turn(
          'system',
          textsOf(given(message, field), `${field}.content`),
          rest(message, messageMembers),
          message.role === 'developer' ? { '.role': message.role } : {},
        );
      case 'user':
        return turn('user', partsOf(given(message, field), `${field}.content`), rest(message, messageMembers));
      case 'assistant':
        return assistantTurn(message, at, calls, functions);
      case 'tool': {
        const id = message.tool_call_id;
        if (!isGiven(id)) throw missing(`${field}.tool_call_id`);
        if (!calls.has(id)) throw invalid(`${field}.tool_call_id`, 'must be the id of a tool call of an earlier assistant message');
        return turn('user', [{ type: 'tool-result', id, parts: partsOf(given(message, field), `${field}.content`) }], rest(message, toolMessageMembers));
      }
      case 'function': {
        const id = functions.get(message.name ?? '');
        if (!isGiven(message.name)) throw missing(`${field}.name`);
        if (id === undefined) throw invalid(`${field}.name`, 'must be the name of a function that an earlier assistant message called');
        const parts = isGiven(message.content) ? textsOf(message.content, `${field}.content`) : [];
        return turn('user', [{ type: 'tool-result', id, parts }], rest(message, functionMessageMembers), { '.role': message.role, '.name': message.name });
      }
      default:
        return message.role satisfies never;
    }
  });
}

const messageMembers = new Set(['role', 'content']);
const functionMessageMembers = new Set(['role', 'content', 'name']);
const toolMessageMembers = new Set(['role', 'content', 'tool_call_id']);
/** In `provider_specific_fields` LiteLLM keeps members of an answer that it does not know: no provider reads them there, and Groq refuses them. */
const assistantMembers = new Set(['role', 'content', 'refusal', 'tool_calls', 'reasoning_content', 'reasoning', 'function_call', 'provider_specific_fields']);

function assistantTurn(message: ChatMessage, at: number, calls: Set<string>, functions: Map<string, string>): Turn {
  const field = `messages[${at}]`;
  const parts: Part[] = [];
  const thoughts = message.reasoning_content ?? message.reasoning;
  if (isGiven(thoughts))
    parts.push({ type: 'thought', text: thoughts, extra: { [dialect]: { field: isGiven(message.reasoning_content) ? 'reasoning_content' : 'reasoning' } } });
  if (isGiven(message.content)) parts.push(...assistantParts(message.content, `${field}.content`));
  if (isGiven(message.refusal)) parts.push({ type: 'refusal', text: message.refusal });
  const carried = rest(message, assistantMembers);
  const images = imagesIn(carried['images']);
  if (images) {
    parts.push(...images);
    delete carried['images'];
  }
  for (const call of message.tool_calls ?? []) {
    calls.add(call.id);
    const extra = carriedAs(rest(call, toolCallMembers));
    parts.push(
      call.type === 'function'
        ? { type: 'tool-call', id: call.id, name: call.function.name, json: call.function.arguments, ...extra }
        : { type: 'tool-call', id: call.id, name: call.custom.name, json: call.custom.input, custom: true, ...extra },
    );
  }
  if (message.function_call) {
    const { name, arguments: json } = message.function_call;
    const id = `call_function_${at}`;
    functions.set(name, id);
    parts.push({ type: 'tool-call', id, name, json, extra: { [dialect]: { '.function_call': true, '.unnamed': true } } });
  }
  const { annotations } = carried;
  if (Array.isArray(annotations) && annotations.length === 0) delete carried['annotations']; // as the gateway's own answers have them
  if (!parts.some((part) => part.type !== 'thought') && !('audio' in carried)) throw missing(`${field}.content`);
  return turn('model', parts, carried);
}

/** Images as the gateway's own answers have them (OpenRouter's member). @returns undefined for any other value, which is carried as it is */
function imagesIn(images: Json | undefined): readonly MediaPart[] | undefined {
  if (!Array.isArray(images)) return undefined;
  const media = (images as readonly Json[]).map((image) => {
    const { image_url: source, ...others } = isObject(image) ? image : {};
    const part = isObject(source) && typeof source['url'] === 'string' ? mediaOfImage(source['url']) : undefined;
    return part && { ...part, extra: { [dialect]: { [imageNote]: others } } };
  });
  return media.every((part) => part !== undefined) ? media : undefined;
}

const toolCallMembers = new Set(['id', 'type', 'function', 'custom', 'index']);

type Content = NonNullable<ChatMessage['content']>;

/** System and function messages are text only. */
function textsOf(content: Content, field: string): (TextPart | ForeignPart)[] {
  return partsOf(content, field).map((part, at) => {
    if (part.type === 'media') throw invalid(`${field}[${at}].type`, 'must be "text"');
    return part;
  });
}

function assistantParts(content: Content, field: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, at) => {
    if (part.type === 'text') return textOf(part);
    if (part.type === 'refusal') return { type: 'refusal', text: part.refusal };
    if (part.type === 'image_url' || part.type === 'input_audio' || part.type === 'file') throw invalid(`${field}[${at}].type`, 'must be "text" or "refusal"');
    return foreignOf(part, `${field}[${at}]`);
  });
}

function partsOf(content: Content, field: string): (TextPart | MediaPart | ForeignPart)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, at) => {
    const place = `${field}[${at}]`;
    switch (part.type) {
      case 'text':
        return textOf(part);
      case 'image_url': {
        if (typeof part.image_url === 'string') {
          if (!mediaOfImage(part.image_url)) throw invalid(`${place}.image_url`, 'must be an http or https address or a data URL');
          return foreignOf(part, place);
        }
        const media = mediaOfImage(part.image_url.url);
        if (!media) throw invalid(`${place}.image_url.url`, 'must be an http or https address or a data URL');
        const { detail } = part.image_url as { readonly detail?: unknown };
        const detailMember = typeof detail === 'string' ? { detail } : {};
        return { ...media, ...detailMember, ...carriedOf(part, 'image_url', part.image_url, ['url', ...Object.keys(detailMember)]) };
      }
      case 'input_audio':
        return {
          ...mediaOfAudio(part.input_audio.data, part.input_audio.format, `${place}.input_audio.data`),
          ...carriedOf(part, 'input_audio', part.input_audio, ['data', 'format']),
        };
      case 'file': {
        const { file_data: data, file_id: id, filename: name } = part.file;
        if (!isGiven(data) && !isGiven(id)) throw missing(`${place}.file.file_data`);
        const media = mediaOfFile(isGiven(data) ? { data } : { id: id! }, name ?? undefined, `${place}.file.file_data`);
        return { ...media, ...carriedOf(part, 'file', part.file, ['file_data', 'file_id', 'filename']) };
      }
      case 'refusal':
        throw invalid(`${place}.type`, 'must be "text", "image_url", "input_audio" or "file"');
      default:
        part.type satisfies 'unknown';
        return foreignOf(part, place);
    }
  });
}

/** Content that only this dialect knows, or one of its vendors. */
const foreignOf = (part: object, place: string): ForeignPart => ({ type: 'foreign', dialect, value: bounded(rest(part, none), place) });
const none = new Set<string>();

const textOf = (part: ChatContentPart & { type: 'text' }): TextPart => ({ type: 'text', text: part.text, ...carriedAs(rest(part, textMembers)) });
/** OpenAI's agents for JavaScript write the role and the annotations of an answer into its text, too, where the public description has neither. */
const textMembers = new Set(['type', 'text', 'role', 'annotations']);

/** The members of a part and of its inner object that are not understood. */
function carriedOf(part: object, inner: string, value: object, known: readonly string[]): { readonly extra?: Extra } {
  return carriedAs({ ...rest(part, new Set(['type', inner])), ...nested(inner, rest(value, new Set(known))) });
}

function given({ content }: ChatMessage, field: string): Content {
  if (!isGiven(content)) throw missing(`${field}.content`);
  return content;
}

function turn(role: Turn['role'], parts: readonly Part[], carried: Record<string, Json>, note: JsonObject = {}): Turn {
  return { role, parts, ...carriedAs({ ...carried, ...note }) };
}
