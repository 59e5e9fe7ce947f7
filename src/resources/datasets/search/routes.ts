import { Type } from 'typebox';
import type { SearchPassages } from '#core/passages';
import { requestId } from '#kit/crypto/ids';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { nullable } from '#http/schemas';
import { datasetNamesIn, namesAll, namesNothing } from '../../dataset-names.ts';
import { invalid } from '#core/fault';

const rank = nullable(Type.Integer({ minimum: 1 }), { description: 'From 1; null where that channel did not find it or did not run.' });

const Found = Type.Object({
  index: Type.Integer({ description: 'From 1.' }),
  dataset: Type.String(),
  filename: Type.String(),
  page: nullable(Type.Integer(), { description: 'From 1; null where the file has no pages.' }),
  chunk_id: Type.Integer(),
  score: Type.Number(),
  text: Type.String({ description: 'With the title and the headings above it.' }),
  ranks: Type.Object({ lexical: rank, vector: rank, fused: rank, rerank: rank }),
  cut: Type.Optional(Type.String({ description: 'Why it was left out: limit, context, merged or rerank.' })),
});

const Asked = Type.Object(
  {
    dataset: Type.Union([Type.String({ minLength: 1, maxLength: 200_000 }), Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 1000 })], {
      description: 'Full names of datasets, as a list or with commas between them, or `all`.',
    }),
    message: Type.String({ minLength: 1, description: 'The question.' }),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 25 })),
    explain: Type.Optional(Type.Boolean({ default: false, description: 'With those that were left out, and why.' })),
  },
  { additionalProperties: true },
);

/** What a search finds, without an answer to the question. */
export function searchRoutes(search: SearchPassages): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/get-dataset-results', {
      scope: 'datasets',
      owner: 'caller',
      spends: true,
      summary: 'The passages of datasets that a question finds.',
      input: Asked,
      output: Type.Object({
        response: Type.Array(Found),
        count: Type.Integer(),
        vectors_down: Type.Optional(Type.Literal(true, { description: 'Only words were searched: the model of the vectors is not there.' })),
        warnings: Type.Optional(Type.Array(Type.String())),
      }),
      async answer({ caller, by, input: { dataset, message, limit = 25, explain = false }, signal, choices: { app, tags } = {} }) {
        const names = namesIn(dataset);
        const { passages, vectorsDown, warnings } = await search({
          caller,
          datasets: names,
          question: message,
          limit,
          explain,
          requestId: by.requestId ?? requestId(),
          app,
          tags,
          signal,
        });
        return {
          response: passages.map(({ id, dataset: name, filename, page, score, text, ranks, cut }, at) => ({
            index: at + 1,
            dataset: name,
            filename,
            page,
            chunk_id: id,
            score,
            text,
            ranks,
            ...(cut ? { cut } : {}),
          })),
          count: passages.length,
          ...(vectorsDown ? { vectors_down: true } : {}),
          ...(warnings.length > 0 ? { warnings } : {}),
        };
      },
    }),
  ];
}

const mostNames = 1000;

/** Names as a list, or in one text with commas between them; `none` names nothing. */
function namesIn(given: string | readonly string[]): 'all' | readonly string[] {
  const names = (typeof given === 'string' ? datasetNamesIn(given) : given).map((name) => name.trim()).filter((name) => name !== '');
  if (names.some(namesAll)) return 'all';
  if (names.length === 0 || names.length > mostNames) throw invalid('dataset', `must have 1 to ${mostNames} names; "all" means all that you may read`);
  return names.filter((name) => !namesNothing(name));
}
