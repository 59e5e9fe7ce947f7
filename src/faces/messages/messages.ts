import { decodeCount } from '#dialects/anthropic/decode-request';
import { encodeFaultFrame } from '#dialects/anthropic/faults';
import { messages } from '#dialects/anthropic/index';
import { encodeUsage } from '#dialects/anthropic/usage';
import { CountRequest, MessageObject, MessagesRequest, TokenCount } from '#dialects/anthropic/wire';
import { cutCallsIn } from '#dialects/shared/arguments';
import { clientField } from '#dialects/shared/field-names';
import { answerId } from '../answer-id.ts';
import { answerCall, contextOf, unlabelled, type GeneratingDeps, type Understood } from '../answer.ts';
import { membersOf } from '../other-case.ts';
import type { Asked, Route } from '#http/route';
import { isWebSearch } from '#core/conversation';
import { warn } from '#core/ignoring';
import { soundsIn } from '#core/shown-media';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type { ModelsOf } from '../model-list.ts';
import { idHeaders, root } from './root.ts';
import { known } from './models.ts';

export function messageRoute(deps: GeneratingDeps): Route {
  return {
    method: 'POST',
    path: `${root}/messages`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Answers a conversation, whole or as server-sent events.',
    input: MessagesRequest,
    output: MessageObject,
    sends: ['text/event-stream'],
    numbersAsWritten: true,
    answer: (asked) => answerCall(deps, asked.exchange, understood(asked)),
  };
}

/** The last ones are read though the schema does not describe them. */
const members = membersOf({ ...MessagesRequest.properties, thread: true, speed: true, inference_geo: true, fallbacks: true });

const fieldOf = (field: string, call: GenerateCall) => clientField(messages.fieldNames, field, call);

function understood(asked: Asked): Understood {
  const { exchange, json, bytes, places } = asked;
  const { app, body } = unlabelled(json, members);
  const call = messages.decodeRequest(body);
  const searches = call.tools.some(isWebSearch);
  const answer = { id: answerId('msg_', exchange) };
  const context = contextOf(asked, 'messages', app, ['anthropic-beta']);
  return {
    call,
    context,
    ...(call.stream || searches || call.output.type !== 'text'
      ? {}
      : { passthrough: { dialect: messages.name, request: { written: { bytes, places } }, usageWanted: true } }),
    words: {
      whole(result) {
        const shown = result.candidates.slice(0, 1);
        warn([...cutCallsIn(shown), ...shown.flatMap(({ parts }) => soundsIn(parts))], context.progress);
        return messages.encodeResult(result, answer);
      },
      frames: () => messages.encoder(answer),
      usage: (usage) => encodeUsage(usage),
      fault: (fault) => encodeFaultFrame(fault, exchange.id),
      fieldOf,
      headers: idHeaders(exchange.id),
    },
  };
}

export interface CountDeps {
  readonly models: ModelsOf;
  readonly count: (call: GenerateCall, context: Context) => Promise<number>;
}

/** `POST /messages/count_tokens`: the prompt's tokens, as the provider counts them if it can be asked, else as the built-in model does. Costs nothing. */
export function countRoute({ models, count }: CountDeps): Route {
  return {
    method: 'POST',
    path: `${root}/messages/count_tokens`,
    scope: 'passthrough',
    owner: 'nobody',
    summary: 'Counts the tokens of a conversation without answering it.',
    input: CountRequest,
    output: TokenCount,
    async answer(asked) {
      const { exchange, caller, json } = asked;
      const { app, body } = unlabelled(json, members);
      const call = decodeCount(body);
      known(models(caller), call.model);
      const tokens = await count(call, contextOf(asked, 'messages', app, ['anthropic-beta']));
      exchange.sendJson(200, { input_tokens: tokens }, idHeaders(exchange.id));
    },
  };
}
