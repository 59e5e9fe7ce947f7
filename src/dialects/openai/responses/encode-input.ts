import type { Part, TextPart, ThoughtPart, ToolCallPart, ToolResultPart, Turn } from '#core/conversation';
import { isEmpty, isObject, own, textOf, withoutNotes, type Extra, type Json, type JsonObject } from '#core/json';
import { isLoss } from '../../shared/lost-thoughts.ts';
import { nameOf, nothingLeft } from '../part-names.ts';
import { isFromClient } from './decode-input.ts';
import { itemPlace, urlCitation } from './encode-items.ts';
import { encodeMedia } from './media.ts';
import { encryptedOf } from './thoughts.ts';
import { boundedId } from '../../shared/call-ids.ts';
import { dialect, imageNote } from './wire.ts';

/**
 * Turns → the input items of a request.
 * @param ignored collects what this wire does not support, as `field: reason`
 * @throws Fault `unsupported` for a message of the user that cannot be sent at all
 */
export function encodeInput(turns: readonly Turn[], ignored: Set<string>): readonly JsonObject[] {
  const custom = customCalls(turns);
  return turns.flatMap((turn): readonly JsonObject[] => {
    const carried = own(turn.extra, dialect);
    switch (turn.role) {
      case 'system':
        return encodeSystem(turn.parts, { ...withoutNotes(carried), type: 'message', role: carried['.role'] ?? 'system' }, ignored);
      case 'user':
        return encodeUser(turn.parts, withoutNotes(carried), custom, ignored);
      case 'model':
        return encodeModel(turn.parts, ignored);
      default:
        return turn.role satisfies never;
    }
  });
}

/** The ids of the calls of tools that take free text: their results are items of another type. */
function customCalls(turns: readonly Turn[]): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { parts } of turns) for (const part of parts) if (part.type === 'tool-call' && part.custom) ids.add(part.id);
  return ids;
}

/** None where nothing of it can be sent, or where it only changes a configuration that this wire does not have. */
function encodeSystem(parts: readonly Part[], members: JsonObject, ignored: Set<string>): readonly JsonObject[] {
  const content = encodeContent(parts, ignored);
  return content.length === 0 ? [] : [{ ...members, content }];
}

/** @throws Fault `unsupported` for a message of which nothing can be sent */
function encodeUser(parts: readonly Part[], carried: JsonObject, custom: ReadonlySet<string>, ignored: Set<string>): readonly JsonObject[] {
  const items: JsonObject[] = [];
  const userParts: Part[] = [];
  for (const part of parts) {
    if (part.type === 'tool-result') items.push(encodeResult(part, custom.has(part.id), ignored));
    else if (part.type === 'foreign' && part.dialect === dialect && isFromClient(part.value)) items.push(part.value);
    else userParts.push(part);
  }
  const content = encodeContent(userParts, ignored);
  if (content.length > 0) items.push({ ...carried, type: 'message', role: 'user', content });
  else if (items.length === 0 && userParts.length > 0) throw nothingLeft(userParts);
  return items;
}

/** @param isCustom the call is of a tool that takes free text */
function encodeResult({ id, parts, failed, extra }: ToolResultPart, isCustom: boolean, ignored: Set<string>): JsonObject {
  const carried = own(extra, dialect);
  if (failed) ignored.add("tool result: the provider's interface has no mark for one that failed.");
  const [first] = parts;
  const content = encodeContent(parts, ignored);
  const output: Json = parts.length === 1 && first?.type === 'text' && isEmpty(own(first.extra, dialect)) ? first.text : content.length === 0 ? '' : content;
  return { ...withoutNotes(carried), type: isCustom ? 'custom_tool_call_output' : 'function_call_output', call_id: callId(id), output };
}

/** Longer ids are refused: AnswerDotAI/fastllm#45, openclaw/openclaw#875 */
const callId = (id: string): string => boundedId(id, 64);

function encodeContent(parts: readonly Part[], ignored: Set<string>): JsonObject[] {
  return parts.flatMap((part): readonly JsonObject[] => {
    if (part.type === 'text') return [{ ...withoutNotes(own(part.extra, dialect)), type: 'input_text', text: part.text }];
    if (part.type === 'refusal') return [{ type: 'input_text', text: part.text }];
    const media = part.type === 'media' ? encodeMedia(part) : undefined;
    if (!media) ignored.add(`${nameOf(part)}: the provider's API does not support it.`);
    return media ? [media] : [];
  });
}

/** Consecutive texts are one message, except those that were decoded from a message of their own. */
function encodeModel(parts: readonly Part[], ignored: Set<string>): readonly JsonObject[] {
  const items: JsonObject[] = [];
  let content: JsonObject[] | undefined;
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'refusal') {
      const message = part.type === 'text' ? own(part.extra, dialect)['.message'] : undefined;
      if (!content || message !== undefined)
        items.push({ ...(message as JsonObject | undefined), type: 'message', role: 'assistant', content: (content = []) });
      content.push(part.type === 'text' ? outputText(part) : { type: 'refusal', refusal: part.text });
      continue;
    }
    content = undefined;
    const item = encodeItem(part, ignored);
    if (item) items.push(item);
  }
  return items;
}

const outputText = ({ text, citations, extra }: TextPart): JsonObject => ({
  type: 'output_text',
  text,
  annotations: own(extra, dialect)['.annotations'] ?? citations?.map(urlCitation) ?? [],
});

function encodeItem(part: Exclude<Part, { type: 'text' | 'refusal' }>, ignored: Set<string>): JsonObject | undefined {
  switch (part.type) {
    case 'tool-call':
      return encodeCall(part);
    case 'thought':
      return encodeThought(part, ignored);
    case 'search':
      return undefined; // results of earlier searches are not sent
    case 'foreign':
      if (part.dialect === dialect) return part.value;
      break;
    case 'media': {
      const { [imageNote]: image } = own(part.extra, dialect);
      if (isObject(image) && part.base64 !== undefined) return { ...image, result: part.base64 };
      break;
    }
    case 'tool-result':
      break;
    default:
      return part satisfies never;
  }
  ignored.add(`${nameOf(part)}: the provider's API accepts none in an assistant message.`);
  return undefined;
}

function encodeCall({ id, name, json, custom, extra }: ToolCallPart): JsonObject {
  const carried = withoutNotes(own(extra, dialect));
  return custom
    ? { ...carried, type: 'custom_tool_call', call_id: callId(id), name, input: json }
    : { ...carried, type: 'function_call', call_id: callId(id), name, arguments: json };
}

/** Only a thought of this wire can be sent back: it has encrypted or reasoning content. */
function encodeThought(part: ThoughtPart, ignored: Set<string>): JsonObject | undefined {
  const { text, extra } = part;
  const { '.id': id, '.content': inContent, encrypted_content: encrypted } = own(extra, dialect);
  if (encrypted === undefined && inContent === undefined) {
    if (isLoss(part)) ignored.add("thoughts: the provider's interface does not take back those of another.");
    return undefined;
  }
  return {
    type: 'reasoning',
    ...(id === undefined || (encrypted !== undefined && itemPlace(textOf(id))) ? {} : { id }), // OpenAI binds what it encrypts to the id that it gave, not to ours
    summary: text === '' || inContent ? [] : [{ type: 'summary_text', text }],
    ...(inContent ? { content: [{ type: 'reasoning_text', text }] } : {}),
    ...(encrypted === undefined ? {} : { encrypted_content: encrypted }),
  };
}

/** A thought as its owner sees it in the input items of a response. */
export const shownThought = ({ text, extra }: { readonly text: string; readonly extra?: Extra }): JsonObject => {
  const encrypted = encryptedOf(extra);
  return {
    type: 'reasoning',
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    ...(encrypted === undefined ? {} : { encrypted_content: encrypted }),
  };
};
