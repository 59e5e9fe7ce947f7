import { entryOf, fieldWords, includedBy, type Ended } from './entry.ts';
import { encodeFault } from '#dialects/openai/faults';
import { callOf, requestOf } from '#dialects/openai/responses/decode-request';
import { Encoder, type ResponseBeingWritten } from '#dialects/openai/responses/encoder';
import { queued } from '#dialects/openai/responses/response';
import { encodeResult } from '#dialects/openai/responses/result';
import { ResponseObject, ResponsesRequest } from '#dialects/openai/responses/wire';
import { answerId } from '../../answer-id.ts';
import { answerCall, checkText, contextOf, unlabelled, type FieldWords, type GeneratingDeps, type Words } from '../../answer.ts';
import { membersOf } from '../../other-case.ts';
import type { Asked, Route } from '#http/route';
import type { NeededMemory } from '#kit/memory/byte-budget';
import { sizeOf } from '#kit/memory/size-of';
import type { GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import { fold } from '#core/fold';
import type { Progress } from '#core/context';
import { ignoring, warn } from '#core/ignoring';
import { soundsIn } from '#core/shown-media';
import { root } from '../root.ts';
import type { Background, BackgroundDeps } from './background.ts';
import { continuationOf, type Continuation } from './continuation.ts';
import type { Entry, KeepingDeps } from './stored-body.ts';

export type CreatingDeps = GeneratingDeps & KeepingDeps & Pick<BackgroundDeps, 'affords'>;

export function responseRoute(deps: CreatingDeps, background: Background): Route {
  return {
    method: 'POST',
    path: `${root}/responses`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Answers a conversation, whole, as server-sent events or in the background; the response is kept unless store is false.',
    input: ResponsesRequest,
    output: ResponseObject,
    sends: ['text/event-stream'],
    answer: (asked) => answer(deps, background, asked),
  };
}

const members = membersOf(ResponsesRequest.properties);

async function answer(deps: CreatingDeps, background: Background, asked: Asked): Promise<void> {
  const { exchange, caller, json } = asked;
  const { app, body } = unlabelled(json, members);
  const request = requestOf(body);
  const stored = request.store ?? deps.storing();
  if (request.background && request.store === false) throw new Fault('invalid', 'background needs store to be true.', { field: 'background' });
  const room = stored || request.background ? deps.responses.enter(caller.userId) : undefined;
  if (room) await room;
  const continuation = await continuationOf(deps, asked, request);
  const call = callOf(request, [...continuation.before, ...continuation.said]);
  if (continuation.hasStored) checkText(call);
  const context = contextOf(asked, 'chatcompat', app, ['openai-beta']);
  if (!stored && !request.background && continuation.conversationId !== undefined)
    ignoring(['conversation: the response is not stored, so nothing is added to it'], context);
  const id = answerId('resp_', exchange);
  const created = Math.floor(deps.clock.now() / 1000);
  const response = queued(request, { id, created }, stored || request.background === true);
  if (request.background) return background.begin({ exchange, request, response, continuation, call, context });
  const answering = { response, ...includedBy(request), now: () => Math.floor(deps.clock.now() / 1000) };
  const words = wordsOf(
    answering,
    { memory: exchange, progress: context.progress, named: fieldWords(continuation.isRepeating ? { text: request.text } : request, continuation) },
    stored ? (ended) => keep(deps, entryOf(caller.userId, continuation, ended), continuation) : undefined,
  );
  await answerCall(deps, exchange, { call, context, words });
}

/** What the words of an answer may use of its request. */
interface Answer {
  readonly memory: NeededMemory;
  readonly progress: Progress;
  readonly named: FieldWords;
}

/** Keeps a response with the parts of its answer. @returns false where it could not be kept */
type Keep = (ended: Ended) => Promise<boolean>;

/** @param keep absent where the response is not to be kept, as it says itself then */
function wordsOf(answering: ResponseBeingWritten, { memory, progress, named }: Answer, keep?: Keep): Words {
  let made: Encoder | undefined; // a whole answer needs none
  const encoder = () => (made ??= new Encoder(answering));
  const said: GenerateEvent[] = [];
  const ended = (): Ended => ({ response: encoder().response, answer: fold(said).candidates[0]?.parts ?? [] });
  return {
    ...named,
    async whole(result) {
      warn(soundsIn(result.candidates[0]?.parts ?? []), progress);
      const response = encodeResult(result, answering);
      if (!keep) return response;
      const text = JSON.stringify(response);
      if (await keep({ response, answer: result.candidates[0]?.parts ?? [], text })) return text;
      (progress.warnings ??= []).push('store: the response could not be kept, so that later requests cannot name it');
      return { ...response, store: false };
    },
    frames: () => ({
      encode(event) {
        if (!('progress' in event)) {
          memory.need(sizeOf(event)); // the last frame says all of it again
          if (keep) said.push(event);
        }
        return encoder().encode(event);
      },
      async end() {
        const frames = encoder().finish();
        return frames + encoder().last(!keep || (await keep(ended())));
      },
    }),
    async fault(fault) {
      if (progress.booked) encoder().encode({ type: 'usage', usage: progress.booked });
      const frames = encoder().fail(encodeFault(fault).error);
      await keep?.(ended());
      return frames;
    },
  };
}

/**
 * A response that cannot be stored, or would be too long to continue, is answered with `store: false`. A failed one is in no conversation; a conversation that an
 * answer makes too long can still be read.
 */
async function keep({ responses, conversations, log }: KeepingDeps, entry: Entry, { itemsBefore, conversationId }: Continuation): Promise<boolean> {
  const isAdded = conversationId !== undefined && entry.status !== 'failed';
  if (!isAdded && itemsBefore + entry.items > responses.mostItems) return false;
  try {
    await (isAdded ? conversations.add(conversationId, entry) : responses.keep(entry));
    return true;
  } catch (error) {
    log('A response was not kept.', error);
    return false;
  }
}
