import type { ToolCallPart } from '#core/conversation';
import type { GenerateEvent } from '#core/event';
import type { GenerateResult } from '#core/fold';
import { mediaText } from '#core/shown-media';
import { isObject, own, rest, type JsonObject } from '#core/json';
import { cutPartIn, writtenArguments } from '../shared/arguments.ts';
import { reader } from './decode-answer.ts';
import { citationsOf, headOf, isCounted, isSearch, searchBlocks, stopOf, thoughtMembers } from './encode-answer.ts';
import type { MessageAnswer } from './encoder.ts';
import { faultOfError, malformed } from './faults.ts';
import { encodeUsage } from './usage.ts';
import { dialect } from './wire.ts';

/** A whole message ↔ events and results. */

export function decodeResult(body: unknown, model: string, ignored: readonly string[] = []): readonly GenerateEvent[] {
  if (!isObject(body)) throw malformed();
  if (body['type'] === 'error' || body['error']) throw faultOfError(body['error']);
  const content: unknown = body['content'];
  if (!Array.isArray(content)) throw malformed();
  const answer = reader(model, ignored);
  const events = [
    ...answer.take({ type: 'message_start', message: rest(body, atTheEnd) }),
    ...content.flatMap((block: unknown, index) => [
      ...answer.take({ type: 'content_block_start', index, content_block: block }),
      ...answer.take({ type: 'content_block_stop', index }),
    ]),
    ...answer.take({
      type: 'message_delta',
      delta: { stop_reason: body['stop_reason'], stop_sequence: body['stop_sequence'] ?? null, stop_details: body['stop_details'] ?? null },
      context_management: body['context_management'] ?? null,
      usage: body['usage'] ?? null,
    }),
  ];
  if (!answer.isFinished()) throw malformed();
  return [...events, ...answer.close()];
}

/** Members that a stream has in its last event, and a whole message among its other members. */
const atTheEnd = new Set(['content', 'stop_reason', 'stop_sequence', 'stop_details', 'context_management']);

/** @param id of the message, unless its upstream spoke this wire and sent one itself */
export function encodeResult({ started, candidates, usage }: GenerateResult, { id }: Pick<MessageAnswer, 'id'>): JsonObject {
  const { head, others } = headOf(started, id);
  const { parts, reason, raw, extra } = candidates[0] ?? { parts: [], reason: 'stop', raw: '', extra: undefined };
  const { stop, others: atEnd } = stopOf(reason, raw, extra);
  const cut = cutPartIn(parts, reason);
  const content = parts.flatMap((part): readonly JsonObject[] => {
    switch (part.type) {
      case 'text': {
        const cited = part.citations ? { citations: citationsOf(part.citations, part.text) } : {};
        return part.text === '' ? [] : [{ ...cited, ...own(part.extra, dialect), type: 'text', text: part.text }];
      }
      case 'refusal':
        return [{ type: 'text', text: part.text }];
      case 'thought':
        return [{ type: 'thinking', thinking: part.text, signature: thoughtMembers(part.extra)['signature'] ?? '' }];
      case 'tool-call':
        return part === cut ? [] : [callBlock(part)];
      case 'search':
        return searchBlocks(part);
      case 'foreign':
        return isSearch(part) ? searchBlocks(part) : part.dialect === dialect ? [part.value] : [];
      case 'media':
        return mediaText(part) === '' ? [] : [{ type: 'text', text: mediaText(part) }];
      case 'tool-result':
        return []; // no answer of this wire has one
      default:
        return part satisfies never;
    }
  });
  const shown = parts.filter((part) => isSearch(part) && isCounted(part)).length;
  return { ...head, content, ...stop, usage: usage ? encodeUsage(usage, shown) : { input_tokens: 0, output_tokens: 0 }, ...others, ...atEnd };
}

/** Arguments that are not a JSON object are wrapped in one as text. */
function callBlock({ id, name, json, extra }: ToolCallPart): JsonObject {
  return { ...own(extra, dialect), type: 'tool_use', id, name, input: writtenArguments(json) ?? { arguments: json } };
}
