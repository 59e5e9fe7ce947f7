import { Type, type TObject } from 'typebox';
import { encodeFaultFrame } from '#dialects/openai/chat/faults';
import { bodyFault } from '#dialects/shared/read-fields';
import { checked } from '#kit/json/check';
import { audioSeconds } from './audio-duration.ts';
import { answerHeaders } from '../answer-headers.ts';
import { forwarded } from '../forwarded.ts';
import { accompanied, contextOf, unlabelled, type GeneratingDeps } from '../answer.ts';
import { membersOf, refuseOtherCase } from '../other-case.ts';
import type { Asked, Route } from '#http/route';
import { optionalOrNull } from '#http/schemas';
import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import type { Context } from '#core/context';
import type { SendRaw, RawBody, RawRequest } from '#core/raw-request';
import type { Counts } from '#core/price';
import { mostOfPictures, mostOfRecording } from './media-tokens.ts';
import { root } from './root.ts';

export interface RawDeps extends Pick<GeneratingDeps, 'limits'> {
  readonly sendRaw: SendRaw;
}

/** Media requests, forwarded unchanged to a provider of the same interface: 404 for an unknown model, 501 for one that cannot do the task. */
export function rawRoutes(deps: RawDeps): readonly Route[] {
  return operations.map((operation) => ({
    method: 'POST',
    path: `${root}/${operation.name}`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: operation.summary,
    input: operation.input,
    output: Type.Object({}),
    ...(operation.name === 'moderations' ? {} : { sends: ['text/plain', 'text/event-stream'] }),
    ...(operation.form ? { takes: 'multipart' as const } : {}),
    answer: async (asked) => answer(deps, operation, asked, await read(operation, asked)),
  }));
}

interface Operation {
  readonly name: string;
  readonly summary: string;
  readonly input: TObject;
  /** The model where the request names none. */
  readonly model: string;
  /** The fields whose text costs. */
  readonly texts: readonly string[];
  /** What it may cost at most, in tokens beside the text. `bytes` of the file. */
  readonly most: (fields: Readonly<Record<string, unknown>>, bytes: number) => RawRequest['most'];
  readonly form?: true;
  readonly saysText?: true;
  /** What a request asks for that is not counted in tokens. */
  counts?(fields: Readonly<Record<string, unknown>>): Counts;
}

const model = Type.Optional(Type.String({ minLength: 1, maxLength: 200, pattern: '^[\\x20-\\x7e]+$' }));
const text = Type.String({ minLength: 1 });
const stream = optionalOrNull(Type.Boolean());

const operations: readonly Operation[] = [
  {
    name: 'moderations',
    summary: 'Says whether texts or pictures are harmful, by a provider that has it.',
    input: Type.Object({
      model,
      input: Type.Union([text, Type.Array(Type.Union([text, Type.Object({ type: Type.String() })]), { minItems: 1, maxItems: 2048 })]),
    }),
    model: 'omni-moderation-latest',
    texts: ['input'],
    most: () => ({ input: 0, output: 0 }),
  },
  {
    name: 'audio/transcriptions',
    summary: 'Writes down what is said in a recording, by a provider that has it.',
    input: Type.Object({ model, file: Type.String({ format: 'binary' }), stream: Type.Optional(Type.String()) }),
    model: 'whisper-1',
    texts: ['prompt'],
    most: (_, bytes) => mostOfRecording(bytes),
    form: true,
    saysText: true,
  },
  {
    name: 'images/generations',
    summary: 'Draws pictures, by a provider that has it.',
    input: Type.Object({ model, prompt: text, n: optionalOrNull(Type.Integer({ minimum: 1, maximum: 10 })), stream }),
    model: 'gpt-image-1',
    texts: ['prompt'],
    counts: (fields) => ({ pictures: Math.max(typeof fields['n'] === 'number' ? fields['n'] : 1, mostInSequence(fields)) }),
    most: mostOfPictures,
  },
];

/** As many pictures as the models of some vendors may draw for one prompt: https://www.volcengine.com/docs/82379/1541523 */
function mostInSequence({ sequential_image_generation_options: options }: Readonly<Record<string, unknown>>): number {
  const most = isObject(options) ? options['max_images'] : undefined;
  return typeof most === 'number' && most >= 1 ? Math.min(Math.floor(most), mostDrawn) : 1;
}

const mostDrawn = 15;

interface Read {
  readonly model: string;
  readonly body: RawBody;
  readonly stream: boolean;
  readonly texts: readonly string[];
  readonly counts: Counts;
  readonly most: RawRequest['most'];
  readonly app: string | undefined;
}

/** Also those that are read though the schemas do not describe them. */
const members = new Map(
  operations.map(({ name, input }) => [
    name,
    membersOf({ ...input.properties, prompt: true, stream_format: true, response_format: true, sequential_image_generation_options: true }),
  ]),
);
const checks = new Map(operations.map(({ name, input }) => [name, checked(input, bodyFault)]));

async function read(operation: Operation, asked: Asked): Promise<Read> {
  if (operation.form) return readForm(operation, asked);
  const { app, body } = unlabelled(asked.json, members.get(operation.name)!);
  const fields = checks.get(operation.name)!(body) as Readonly<Record<string, unknown>>;
  const bytes = body === asked.json ? asked.bytes : undefined;
  if (!bytes) throw new Fault('invalid', 'app_name cannot be in the body here: send it as X-App-Name.', { field: 'app_name' });
  return {
    model: typeof fields['model'] === 'string' ? fields['model'] : operation.model,
    body: { type: 'json', bytes, places: asked.places },
    stream: fields['stream'] === true || fields['stream_format'] === 'sse',
    texts: operation.texts.flatMap((name) => textsIn(fields[name])),
    counts: operation.counts?.(fields) ?? {},
    most: operation.most(fields, 0),
    app,
  };
}

/** The form is written anew for the provider: two readers of the same bytes may see two forms. */
async function readForm(operation: Operation, { exchange, json, files }: Asked): Promise<Read> {
  const texts = json as Readonly<Record<string, string | readonly string[]>>;
  const fields: Record<string, unknown> = { ...texts };
  refuseOtherCase(fields, members.get(operation.name)!);
  const form = new FormData();
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text === 'string') form.append(name, text);
    else if (name.endsWith('[]')) for (const one of text) form.append(name, one);
    else throw new Fault('invalid', `${name.slice(0, 100)} must be given once.`, { field: name.slice(0, 100) });
  }
  for (const { field, filename, type, size, content } of files) {
    if (Object.hasOwn(fields, field)) throw new Fault('invalid', `${field} must be given once.`, { field });
    fields[field] = 'file';
    exchange.need(size); // it goes on as another form
    form.append(field, new File([content], filename || 'file', { type }));
  }
  checks.get(operation.name)!(fields);
  const file = form.get('file');
  if (!(file instanceof File)) throw new Fault('invalid', 'file must be a file.', { field: 'file' });
  return {
    model: typeof fields['model'] === 'string' ? fields['model'] : operation.model,
    body: { type: 'form', form },
    stream: truths.has(String(fields['stream']).toLowerCase()),
    texts: operation.texts.flatMap((name) => textsIn(fields[name])),
    counts: { heardSeconds: await audioSeconds(file) },
    most: operation.most(fields, file.size),
    app: undefined,
  };
}

/** As providers read a field of a form: one written by Python is `True`. */
const truths: ReadonlySet<string> = new Set(['true', '1', 'on', 'yes']);

/** Of all texts that are read together, which no model reads. */
const mostCharacters = 8_388_608;

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.flatMap((one: unknown) => (typeof one === 'string' ? [one] : textsIn((one as { text?: unknown } | null)?.text))) : [];
}

async function answer({ sendRaw, limits }: RawDeps, operation: Operation, asked: Asked, { app, ...read }: Read): Promise<void> {
  const { exchange } = asked;
  if (read.texts.reduce((sum, text) => sum + text.length, 0) > mostCharacters)
    throw new Fault('too-large', `${operation.texts[0]} must have at most ${mostCharacters} characters.`, { field: operation.texts[0]! });
  const context: Context = contextOf(asked, 'chatcompat', app, []);
  const send = (opens: (contentType: string) => void) =>
    sendRaw(
      {
        ...read,
        operation: operation.name,
        tokens: 0,
        saysText: operation.saysText ?? false,
        open(contentType, ignored) {
          opens(contentType);
          exchange.open(200, ['content-type', contentType, ...answerHeaders(context.progress, { type: 'started', model: read.model, ignored })]);
        },
        write: (bytes) => exchange.write(bytes),
        drained: () => exchange.drained(),
      },
      context,
    );
  await accompanied({ limits }, exchange, { call: read, context }, () => forwarded(exchange, encodeFaultFrame, send));
}
