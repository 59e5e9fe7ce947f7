import { Type } from 'typebox';
import { BatchEmbedRequest, BatchEmbedResponse, EmbedRequest, EmbedResponse, PredictRequest, PredictResponse } from '#dialects/gemini/embed-wire';
import { CountRequest, GenerateChunk, GenerateRequest, GenerateResponse, TokenCount } from '#dialects/gemini/wire';
import { contextOf, type EmbeddingDeps, type GeneratingDeps, unlabelled } from '../answer.ts';
import { membersInBothSpellings } from '../other-case.ts';
import type { Exchange } from '#http/exchange';
import type { Asked, Operation, Route } from '#http/route';
import { Fault } from '#core/fault';
import type { ModelsOf } from '../model-list.ts';
import { embedContent } from './embed.ts';
import { generateContent } from './generate.ts';
import { embeddingName, namesFor, type StandIns } from './names.ts';
import { decodeCount } from '#dialects/gemini/decode-request';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';

export type OperationDeps = GeneratingDeps & CountDeps & EmbeddingDeps & { readonly models: ModelsOf; readonly standIns: () => StandIns };

/**
 * What is done with a model stands behind a colon at the end of its address: `models/gemini-2.5-flash:generateContent`. The name may have slashes in it, and
 * both the slashes and the colon may come encoded: so one route takes them all.
 */
export function operationRoutes(root: string, deps: OperationDeps): readonly Route[] {
  return [
    {
      method: 'POST',
      path: `${root}/models/*`,
      also: platformPaths(root).map((path) => ({ method: 'POST', path })),
      scope: 'passthrough',
      owner: 'caller',
      spends: true,
      numbersAsWritten: true,
      missing: (params) => (isOperation(addressedModel({ params })) ? undefined : noOperation),
      summary: 'Does something with a model.',
      operations,
      answer: (asked) => answered(deps, asked, addressedModel(asked.exchange)),
    },
  ];
}

/** A model of the cloud platform; which project asks, and where, is not heeded. */
export const platformPaths = (root: string): readonly string[] =>
  ['', '/projects/:project/locations/:location'].map((within) => `${root}${within}/publishers/:publisher/models/*`);

/** Does an address end with one of these operations, which take POST alone? */
export const isOperation = (address: string): boolean => operations.some(({ suffix }) => address.endsWith(suffix));

/** The name of the model in an address, perhaps with an operation behind it. */
export function addressedModel({ params: { publisher, '*': name = '' } }: Pick<Exchange, 'params'>): string {
  return publisher === undefined ? name : `publishers/${publisher}/models/${name}`;
}

const operations: readonly Operation[] = [
  { suffix: ':generateContent', spends: true, summary: 'Answers a conversation, whole.', input: GenerateRequest, output: GenerateResponse },
  {
    suffix: ':streamGenerateContent',
    spends: true,
    summary: 'Answers a conversation piece by piece: as server-sent events with `?alt=sse`, else as a JSON array.',
    input: GenerateRequest,
    output: Type.Array(GenerateChunk),
    sends: ['text/event-stream'],
  },
  { suffix: ':countTokens', summary: 'Counts the tokens of a conversation without answering it.', input: CountRequest, output: TokenCount },
  {
    suffix: ':embedContent',
    spends: true,
    summary: 'Makes the vector of a text. A model name that is not known is answered by the default embedding model.',
    input: EmbedRequest,
    output: EmbedResponse,
  },
  { suffix: ':batchEmbedContents', spends: true, summary: 'Makes vectors of up to 256 texts.', input: BatchEmbedRequest, output: BatchEmbedResponse },
  {
    suffix: ':predict',
    spends: true,
    summary: 'Makes vectors of up to 256 texts, in the words of the cloud platform.',
    input: PredictRequest,
    output: PredictResponse,
  },
];

function answered(deps: OperationDeps, asked: Asked, address: string): unknown {
  const colon = address.lastIndexOf(':');
  const model = address.slice(0, Math.max(0, colon));
  const names = (name: string) => namesFor(name, deps.models(asked.caller), deps.standIns());
  const operation = address.slice(colon + 1);
  switch (operation) {
    case 'generateContent':
      return generateContent(deps, asked, { model, stream: false }, names);
    case 'streamGenerateContent':
      return generateContent(deps, asked, { model, stream: true }, names);
    case 'countTokens':
      return countTokens(deps, asked, model, names);
    case 'embedContent':
    case 'batchEmbedContents':
    case 'predict':
      return embedContent(deps, asked, { model, operation }, (name) => embeddingName(name, deps.models(asked.caller), deps.standIns()));
    default:
      throw new Fault('not-found', noOperation);
  }
}

const noOperation =
  'There is nothing at this address: it ends with the model, a colon, and generateContent, streamGenerateContent, countTokens, embedContent or batchEmbedContents.';

const countMembers = membersInBothSpellings(CountRequest.properties);

interface CountDeps {
  readonly count: (call: GenerateCall, context: Context) => Promise<number>;
}

/** `countTokens`: the prompt's tokens, as the provider counts them if it can be asked, else as the built-in model does. Costs nothing. */
async function countTokens({ count }: CountDeps, asked: Asked, written: string, namesFor: (model: string) => readonly [string, ...string[]]) {
  const { app, body } = unlabelled(asked.json, countMembers);
  const call = decodeCount(body, written);
  const [model] = namesFor(written);
  return { totalTokens: await count({ ...call, model }, contextOf(asked, 'gencompat', app, [])) };
}
