import { asChat, Completion, completionEncoder, CompletionRequest, encodeCompletion } from '#dialects/openai/completions/completions';
import { decodeRequest } from '#dialects/openai/chat/decode-request';
import { encodeFaultFrame } from '#dialects/openai/chat/events';
import { answerCall, contextOf, unlabelled, type GeneratingDeps } from '../answer.ts';
import type { Route } from '#http/route';
import { root } from './root.ts';

/** `POST /completions`, the older interface: every chat model answers it. */
export function completionsRoute(parts: GeneratingDeps): Route {
  return {
    method: 'POST',
    path: `${root}/completions`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Answers one prompt, whole or as server-sent events: the older interface, for programs that know no other.',
    input: CompletionRequest,
    output: Completion,
    answer(asked) {
      const { app, body } = unlabelled(asked.json);
      const { call, usageWanted } = decodeRequest(asChat(body));
      const identity = { id: `cmpl-${asked.exchange.id.slice(4)}`, created: Math.floor(parts.clock.now() / 1000) };
      return answerCall(parts, asked.exchange, {
        call,
        context: contextOf(asked, 'chatcompat', app, []),
        words: {
          whole: (result) => encodeCompletion(result, identity),
          frames: () => completionEncoder({ ...identity, usageWanted }),
          passedEnd: 'data: [DONE]\n\n',
          fault: encodeFaultFrame,
        },
      });
    },
  };
}
