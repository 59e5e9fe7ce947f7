import { ChatRequest } from '#dialects/openai/chat/wire';
import { encodeFaultFrame } from '#dialects/openai/chat/faults';
import { decodeRequest } from '#dialects/openai/completions/decode-request';
import { completions } from '#dialects/openai/completions/index';
import { Completion, CompletionRequest } from '#dialects/openai/completions/wire';
import { answerId } from '../answer-id.ts';
import { answerCall, contextOf, unlabelled, type GeneratingDeps } from '../answer.ts';
import { membersOf } from '../other-case.ts';
import type { Route } from '#http/route';
import { root } from './root.ts';

/** Also those that it has in common with chat completions. */
const members = membersOf({ ...ChatRequest.properties, ...CompletionRequest.properties, top_k: true, thinking: true });

/** `POST /completions`, the older interface: every chat model answers it. */
export function completionsRoute(deps: GeneratingDeps): Route {
  return {
    method: 'POST',
    path: `${root}/completions`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Answers one prompt, whole or as server-sent events: the older interface, for programs that know no other.',
    input: CompletionRequest,
    output: Completion,
    sends: ['text/event-stream'],
    answer(asked) {
      const { app, body } = unlabelled(asked.json, members);
      const { call, usageWanted } = decodeRequest(body);
      const answer = { id: answerId('cmpl-', asked.exchange), created: Math.floor(deps.clock.now() / 1000), usageWanted };
      return answerCall(deps, asked.exchange, {
        call,
        context: contextOf(asked, 'chatcompat', app, []),
        words: {
          whole: (result) => completions.encodeResult(result, answer),
          frames: () => completions.encoder(answer),
          fault: encodeFaultFrame,
        },
      });
    },
  };
}
