import { decodeRequest } from '#dialects/openai/chat/decode-request';
import { encodeFaultFrame } from '#dialects/openai/chat/faults';
import { chat } from '#dialects/openai/chat/index';
import { encodeUsage } from '#dialects/openai/chat/usage';
import { hasOlderFunctions } from '#dialects/openai/chat/older-functions';
import { ChatCompletion, ChatRequest } from '#dialects/openai/chat/wire';
import { ResponsesRequest } from '#dialects/openai/responses/wire';
import { clientField } from '#dialects/shared/field-names';
import { answerId } from '../answer-id.ts';
import { answerCall, contextOf, unlabelled, type GeneratingDeps, type Understood } from '../answer.ts';
import { membersOf } from '../other-case.ts';
import type { Asked, Route } from '#http/route';
import type { GenerateCall } from '#core/call';
import type { Clock } from '#kit/async/clock';
import { decodeResponseBody, isForResponse } from './response-body.ts';
import { root } from './root.ts';

export function chatRoute(deps: GeneratingDeps): Route {
  return {
    method: 'POST',
    path: `${root}/chat/completions`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Answers a conversation, whole or as server-sent events.',
    input: ChatRequest,
    output: ChatCompletion,
    sends: ['text/event-stream'],
    answer: (asked) => answerCall(deps, asked.exchange, understood(asked, deps.clock)),
  };
}

/** Also those of a request for a response, in whose words some clients ask. */
const members = membersOf({ ...ChatRequest.properties, ...ResponsesRequest.properties, top_k: true, thinking: true });

const chatField = (field: string, call: GenerateCall) => clientField(chat.fieldNames, field, call);

function understood(asked: Asked, clock: Clock): Understood {
  const { exchange, json, bytes, places } = asked;
  const { app, body } = unlabelled(json, members);
  const { call, usageWanted, asItCame, named } = isForResponse(body)
    ? { ...decodeResponseBody(body), asItCame: false }
    : { ...decodeRequest(body), named: { fieldOf: chatField } };
  const answer = { id: answerId('chatcmpl-', exchange), created: Math.floor(clock.now() / 1000), usageWanted, isOlder: hasOlderFunctions(call) };
  return {
    call,
    context: contextOf(asked, 'chatcompat', app, ['openai-beta']),
    ...(asItCame && body === json ? { passthrough: { dialect: 'openai-chat', request: { written: { bytes, places } }, usageWanted } } : {}),
    words: {
      ...named,
      whole: (result) => chat.encodeResult(result, answer),
      frames: () => chat.encoder(answer),
      usage: encodeUsage,
      fault: encodeFaultFrame,
    },
  };
}
