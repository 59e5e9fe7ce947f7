import { checked } from '#kit/json/check';
import { unknownMembers, type EmbedCall, type Purpose } from '#core/embed';
import { isObject, type JsonObject } from '#core/json';
import { invalid } from '#core/fault';
import { isGiven, bodyFault } from '../shared/read-fields.ts';
import { BatchEmbedRequest, EmbedRequest, Instance, mostInputs, PredictRequest, purpose } from './embed-wire.ts';
import { withClientSpelling } from './spelling.ts';

/** Embedding requests ↔ call. */

const check = checked(EmbedRequest, bodyFault);
const checkBatch = checked(BatchEmbedRequest, bodyFault);
const checkPredict = checked(PredictRequest, bodyFault);

/** `embedContent` → call. @param body parsed JSON @throws Fault `invalid`, naming the field as the client spelled it */
export function decodeEmbed(body: unknown, model: string): EmbedCall {
  return withClientSpelling(body, (value, spelled) => {
    const request = check(value);
    return callOf(model, [inputOf(request, model, '')], unknownIn(request, '').map(spelled));
  });
}

/** `batchEmbedContents` → call. @throws as `decodeEmbed` */
export function decodeBatchEmbed(body: unknown, model: string): EmbedCall {
  checkLength(body, 'requests');
  return withClientSpelling(body, (value, spelled) => {
    const batch = checkBatch(value);
    const inputs = batch.requests.map((request, at) => inputOf(request, model, `requests[${at}].`));
    const inRequests = batch.requests.flatMap((request, at) => unknownIn(request, `requests[${at}].`));
    return callOf(model, inputs, [...unknownMembers(batch, BatchEmbedRequest.properties), ...inRequests].map(spelled));
  });
}

/** `predict` → call. @throws as `decodeEmbed` */
export function decodePredict(body: unknown, model: string): EmbedCall {
  checkLength(body, 'instances');
  return withClientSpelling(body, (value, spelled) => {
    const request = checkPredict(value);
    const { instances, parameters } = request;
    return callOf(
      model,
      instances.map(({ content, taskType, title }, at) => {
        if (content === '') throw invalid(`instances[${at}].content`, 'must not be empty');
        return { text: content, purpose: purposeOf(taskType, title), dimensions: parameters?.outputDimensionality ?? undefined, at: '' };
      }),
      [
        ...unknownMembers(request, PredictRequest.properties),
        ...instances.flatMap((instance, at) => unknownMembers(instance, Instance.properties, `instances[${at}].`)),
        ...unknownMembers(parameters ?? {}, parametersSentOn, 'parameters.'),
      ].map(spelled),
    );
  });
}

/** Without `autoTruncate`, which no target is asked for. */
const parametersSentOn = { outputDimensionality: true };

/** Members that are not known. @param at path of the request in the body */
const unknownIn = (request: EmbedRequest, at: string): readonly string[] => [
  ...unknownMembers(request, EmbedRequest.properties, at),
  ...unknownMembers(request.embedContentConfig ?? {}, purpose, `${at}embedContentConfig.`),
];

interface Input {
  readonly text: string;
  readonly purpose: Purpose;
  readonly dimensions: number | undefined;
  /** Its path in the body: `requests[1].` */
  readonly at: string;
}

function inputOf({ model: named, content, embedContentConfig: config, ...request }: EmbedRequest, model: string, at: string): Input {
  if (isGiven(named) && !isSame(named, model)) throw invalid(`${at}model`, 'must be the model of the address');
  const text = content.parts.map((part) => part.text).join('\n');
  if (text.trim() === '') throw invalid(`${at}content`, 'must not be empty');
  return {
    text,
    purpose: purposeOf(request.taskType ?? config?.taskType, request.title ?? config?.title),
    dimensions: request.outputDimensionality ?? config?.outputDimensionality ?? undefined,
    at,
  };
}

function callOf(model: string, inputs: readonly Input[], unknown: readonly string[]): EmbedCall {
  const [{ dimensions } = { dimensions: undefined }] = inputs;
  const other = inputs.find((input) => input.dimensions !== dimensions);
  if (other) throw invalid(`${other.at}outputDimensionality`, 'must be the same in all requests');
  return {
    model,
    inputs: inputs.map(({ text }) => text),
    ...(inputs.some(({ purpose }) => purpose.task !== undefined || purpose.title !== undefined) ? { purposes: inputs.map(({ purpose }) => purpose) } : {}),
    ...(dimensions === undefined ? {} : { dimensions }),
    encoding: 'float',
    ...(unknown.length > 0 ? { unknown: unknown.slice(0, mostNamed) } : {}),
  };
}

/** Members that a warning names: a batch may have many. */
const mostNamed = 20;

const purposeOf = (task: string | null | undefined, title: string | null | undefined): Purpose => ({
  ...(isGiven(task) && task !== '' && task !== 'TASK_TYPE_UNSPECIFIED' ? { task } : {}),
  ...(isGiven(title) && title !== '' ? { title } : {}),
});

/** `models/x` equals `x`, and a path prefix may be omitted. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one.replace(/^models\//, ''), other.replace(/^models\//, '')];
  return first === second || first.endsWith(`/${second}`) || second.endsWith(`/${first}`);
}

/** Checked before the schema: the list may have a million items. */
function checkLength(body: unknown, field: string): void {
  const list = isObject(body) ? body[field] : undefined;
  if (Array.isArray(list) && list.length > mostInputs) throw invalid(field, `must have at most ${mostInputs} items`);
}

/** The body of `batchEmbedContents` for a provider. */
export function encodeBatchEmbed(texts: readonly string[], { dimensions }: EmbedCall, purposes: readonly Purpose[] | undefined, model: string): JsonObject {
  return {
    requests: texts.map((text, at) => ({
      model: `models/${model.replace(/^models\//, '')}`,
      content: { parts: [{ text }] },
      ...encodePurpose(purposes?.[at], 'taskType'),
      ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
    })),
  };
}

/** The body of `predict` for a provider. https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api */
export function encodePredict(texts: readonly string[], { dimensions }: EmbedCall, purposes: readonly Purpose[] | undefined): JsonObject {
  return {
    instances: texts.map((content, at) => ({ content, ...encodePurpose(purposes?.[at], 'task_type') })),
    ...(dimensions === undefined ? {} : { parameters: { outputDimensionality: dimensions } }),
  };
}

const encodePurpose = (purpose: Purpose | undefined, taskType: string): JsonObject => ({
  ...(purpose?.task === undefined ? {} : { [taskType]: purpose.task }),
  ...(purpose?.title === undefined ? {} : { title: purpose.title }),
});
