import type { TokenLogprob, GenerateEvent } from '#core/event';
import type { Candidate, GenerateResult } from '#core/fold';
import { isEmpty, isObject, type Json, type JsonObject } from '#core/json';
import { codePoints } from '#kit/text/surrogates';
import { reader } from './decode-answer.ts';
import { encodePart, encodeToolCall, finishReasonOf, headOf, isOlderCall, isOwn, urlCitations, finalMembers, type Identity } from './encode-answer.ts';
import { encodeLogprobs } from '../logprobs.ts';
import { malformed } from './faults.ts';
import { encodeUsage } from './usage.ts';
import type { Choice, Chunk } from './wire.ts';

/** A whole chat completion ↔ events and results. */

export function decodeResult(body: unknown, model: string, ignored: readonly string[] = []): readonly GenerateEvent[] {
  const answer = reader(model, ignored);
  const events = answer.take(body);
  if (!answer.isFinished() || !((body as Chunk).choices as readonly Choice[]).every(hasMessage)) throw malformed();
  return [...events, ...answer.close()];
}

/** Has a choice a message, with content of a type that this wire has? Some vendors leave out content that is empty. */
function hasMessage({ delta, message: whole }: Choice): boolean {
  const message = delta ?? whole; // as the reader does
  if (!isObject(message)) return false;
  const { content } = message;
  return content === undefined || content === null || typeof content === 'string' || Array.isArray(content);
}

export function encodeResult(
  { started, candidates, usage }: GenerateResult,
  { isOlder = false, ...identity }: Identity & { readonly isOlder?: boolean },
): JsonObject {
  const { head, others } = headOf(started, identity, 'chat.completion');
  return { ...head, choices: candidates.map((one, index) => encodeChoice(one, index, isOlder)), ...(usage ? { usage: encodeUsage(usage) } : {}), ...others };
}

function encodeChoice({ parts, reason, raw, logprobs, extra }: Candidate, index: number, isOlderClient: boolean): JsonObject {
  const texts: string[] = [];
  const annotations: JsonObject[] = [];
  const isCited = parts.some((part) => part.type === 'text' && part.citations);
  let before = 0; // code points in the parts before
  const thoughts: string[] = [];
  const refusals: string[] = [];
  const calls: JsonObject[] = [];
  const images: JsonObject[] = [];
  let older: JsonObject | undefined;
  let audio: Readonly<Record<string, Json>> | undefined;
  for (const part of parts) {
    switch (part.type) {
      case 'text':
        // Annotations of this wire are carried on the message.
        if (part.citations && !isOwn(part.extra)) annotations.push(...urlCitations(part.citations, before));
        before += isCited ? codePoints(part.text) : 0;
        texts.push(part.text);
        break;
      case 'thought':
        thoughts.push(part.text);
        break;
      case 'refusal':
        refusals.push(part.text);
        break;
      case 'tool-call':
        if (isOlderClient) older ??= { name: part.name, arguments: part.json };
        else if (isOlderCall(part)) older = { name: part.name, arguments: part.json };
        else calls.push(encodeToolCall(part));
        break;
      case 'media': {
        const media = encodePart(part);
        if (media && 'images' in media) images.push(...media.images);
        else if (media) audio = joined(audio, media.audio);
        break;
      }
      case 'tool-result':
      case 'search':
      case 'foreign':
        break; // no answer of this wire has one
      default:
        part satisfies never;
    }
  }
  const { message: carried, refusalLogprobs } = finalMembers(extra);
  const silent = calls.length > 0 || older !== undefined || refusals.length > 0 || audio !== undefined;
  const message = {
    role: 'assistant',
    content: texts.length > 0 ? texts.join('') : silent ? null : '',
    refusal: refusals.length > 0 ? refusals.join('') : null,
    ...(thoughts.some((one) => one !== '') ? { reasoning_content: thoughts.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(older ? { function_call: older } : {}),
    ...(images.length > 0 ? { images } : {}),
    ...(audio ? { audio } : {}),
    annotations,
    ...carried,
  };
  return { index, message, logprobs: choiceLogprobs(logprobs, refusalLogprobs), finish_reason: finishReasonOf(reason, raw, isOlderClient) };
}

const choiceLogprobs = (content: readonly TokenLogprob[] | undefined, refusal: Json | undefined): JsonObject | null =>
  content || refusal ? { content: content ? encodeLogprobs(content, null) : null, refusal: refusal ?? null } : null;

/** Joins audio fragments of a stream: text members are concatenated, others are sent once. */
function joined(before: JsonObject | undefined, piece: JsonObject): JsonObject {
  if (!before || isEmpty(before)) return piece;
  const text = (name: string) => `${(before[name] as string | undefined) ?? ''}${(piece[name] as string | undefined) ?? ''}`;
  const transcript = before['transcript'] === undefined && piece['transcript'] === undefined ? {} : { transcript: text('transcript') };
  return { ...before, ...piece, data: text('data'), ...transcript };
}
