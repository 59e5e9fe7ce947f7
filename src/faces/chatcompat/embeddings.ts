import { decodeRequest } from '#dialects/openai/embeddings/decode-request';
import { encodeResult } from '#dialects/openai/embeddings/result';
import { dialect, EmbeddingList, EmbeddingRequest } from '#dialects/openai/embeddings/wire';
import { answerHeaders } from '../answer-headers.ts';
import { accompanied, contextOf, unlabelled, type EmbeddingDeps } from '../answer.ts';
import { membersOf } from '../other-case.ts';
import type { Asked, Route } from '#http/route';
import type { Embedded, EmbedPassthrough } from '#core/embed';
import { isObject } from '#core/json';
import { root } from './root.ts';

export function embeddingsRoute(deps: EmbeddingDeps): Route {
  return {
    method: 'POST',
    path: `${root}/embeddings`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Makes vectors of texts. A model name that is not known is answered by the default embedding model, as `model` says.',
    input: EmbeddingRequest,
    output: EmbeddingList,
    answer: (asked) => answer(deps, asked),
  };
}

const members = membersOf(EmbeddingRequest.properties);

async function answer(deps: EmbeddingDeps, asked: Asked): Promise<void> {
  const { exchange, json, bytes, places } = asked;
  const { app, body } = unlabelled(json, members);
  const call = decodeRequest(body);
  const context = { ...contextOf(asked, 'chatcompat', app, []), balance: deps.embeddingBalance() };
  const isPlain = body === json && isObject(body) && Object.values(body).every((value) => value !== null);
  await accompanied(deps, exchange, { call: { model: call.model, stream: false }, context }, async () => {
    const headersOf = (head: Pick<Embedded, 'model' | 'ignored'>) => answerHeaders(context.progress, { type: 'started', ...head });
    const passthrough: EmbedPassthrough = {
      dialect,
      body: bytes,
      places,
      // Without a length: the client sees that the answer is complete by its end, which follows when the call is booked.
      forward(head, pieces) {
        exchange.open(200, ['content-type', 'application/json', ...headersOf(head)]);
        for (const piece of pieces) exchange.write(piece);
      },
    };
    const result = await deps.embed(isPlain ? { ...call, passthrough } : call, context);
    if (exchange.opened) exchange.end();
    else exchange.send(200, ['content-type', 'application/json; charset=utf-8', ...headersOf(result)], await encodeResult(result));
  });
}
