import { decodeBatchEmbed, decodeEmbed, decodePredict } from '#dialects/gemini/embed-request';
import { BatchEmbedRequest, EmbedRequest, PredictRequest } from '#dialects/gemini/embed-wire';
import { encodeBatchEmbedResult, encodeEmbedResult, encodePredictResult } from '#dialects/gemini/embed-result';
import { answerHeaders } from '../answer-headers.ts';
import { accompanied, contextOf, unlabelled, type EmbeddingDeps } from '../answer.ts';
import { membersInBothSpellings } from '../other-case.ts';
import type { Asked } from '#http/route';

/** The operations that make vectors, each with its words for the question and the answer. */
const operations = {
  embedContent: { decode: decodeEmbed, encode: encodeEmbedResult },
  batchEmbedContents: { decode: decodeBatchEmbed, encode: encodeBatchEmbedResult },
  predict: { decode: decodePredict, encode: encodePredictResult },
} as const;

const members = membersInBothSpellings({ ...EmbedRequest.properties, ...BatchEmbedRequest.properties, ...PredictRequest.properties });

/** `embedContent`, `batchEmbedContents`, and `predict` as the platform has it. @param nameFor the model to ask where this one is wanted; throws a Fault */
export async function embedContent(
  deps: EmbeddingDeps,
  asked: Asked,
  { model, operation }: { readonly model: string; readonly operation: keyof typeof operations },
  nameFor: (model: string) => string,
): Promise<void> {
  const { decode, encode } = operations[operation];
  const { exchange } = asked;
  const { app, body } = unlabelled(asked.json, members);
  const call = { ...decode(body, model), model: nameFor(model) };
  const context = { ...contextOf(asked, 'gencompat', app, []), balance: deps.embeddingBalance() };
  await accompanied(deps, exchange, { call: { model: call.model, stream: false }, context }, async () => {
    const result = await deps.embed(call, context);
    const headers = answerHeaders(context.progress, { type: 'started', ...result });
    exchange.send(200, ['content-type', 'application/json; charset=utf-8', ...headers], await encode(result, call));
  });
}
