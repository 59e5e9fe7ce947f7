import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Folders of `src/dialects/` by the name of their dialect. */
const folders: Readonly<Record<string, string>> = {
  'openai-chat': 'openai/chat',
  'openai-responses': 'openai/responses',
  'anthropic-messages': 'anthropic',
  gemini: 'gemini',
};

/** A file of recorded traffic of a dialect. */
export const recordingOf = (dialect: string, path: string): URL => new URL(`../../src/dialects/${folders[dialect]}/recordings/${path}`, import.meta.url);

/** A recorded stream. */
export interface Recording {
  /** `vercel/text`. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** A recorded whole answer. */
export interface WholeRecording {
  readonly name: string;
  readonly body: unknown;
}

/** The recorded answers of a dialect. */
export interface Recordings {
  readonly streams: readonly Recording[];
  /** Those of the streams that end well. */
  readonly answered: readonly Recording[];
  readonly stream: (name: string) => Buffer;
  readonly wholes: readonly WholeRecording[];
}

const textOf = (dialect: string, path: string) => readFileSync(recordingOf(dialect, path)).toString();

function recordings(streams: readonly Recording[], wholes: readonly WholeRecording[]): Recordings {
  const answered = streams.filter(({ name }) => !/\/fails-|-error/.test(name));
  return { streams, answered, stream: (name) => streams.find((one) => one.name === name)!.bytes, wholes };
}

/** Those in files of their own. @param framed the frames of a stream, of which each line of a `.chunks.txt` is the data of one */
function recordingsIn(dialect: string, framed: (lines: readonly string[]) => readonly string[]): Recordings {
  const files = ['vercel', 'handmade']
    .filter((folder) => existsSync(recordingOf(dialect, folder)))
    .flatMap((folder) => readdirSync(recordingOf(dialect, folder)).map((file) => `${folder}/${file}`));
  const linesOf = (file: string) =>
    textOf(dialect, file)
      .split('\n')
      .filter((line) => line !== '');
  const streams = files.flatMap((file): Recording[] => {
    if (file.endsWith('.sse')) return [{ name: file.replace('.sse', ''), bytes: readFileSync(recordingOf(dialect, file)) }];
    return file.endsWith('.chunks.txt') ? [{ name: file.replace('.chunks.txt', ''), bytes: Buffer.from(framed(linesOf(file)).join('')) }] : [];
  });
  const answers = files.filter((file) => file.endsWith('.json') && !/error|429/.test(file));
  return recordings(
    streams,
    answers.map((file) => ({ name: file.replace('.json', ''), body: JSON.parse(textOf(dialect, file)) as unknown })),
  );
}

/** The `event:` line of each frame is the type of its data. */
const typed = (lines: readonly string[]) => lines.map((line) => `event: ${/"type":\s*"([\w.]+)"/.exec(line)?.[1]}\ndata: ${line}\n\n`);
const framesOfGemini = (lines: readonly string[]) => lines.map((line) => `data: ${line}\r\n\r\n`);

export const chatRecordings = recordingsIn('openai-chat', (lines) => [...lines, '[DONE]'].map((line) => `data: ${line}\n\n`));
export const responsesRecordings = recordingsIn('openai-responses', typed);
export const messagesRecordings = recordingsIn('anthropic-messages', typed);

/** A refusal that a provider of the chat wire sent. */
export const chatRefusal = (name: string): string => textOf('openai-chat', `${name}.json`);

/** A request and its answer, as Google's SDK project recorded them. */
interface Interaction {
  readonly request: { readonly url: string; readonly bodySegments: readonly unknown[] };
  readonly response: { readonly statusCode: number; readonly headers: Readonly<Record<string, string>>; readonly bodySegments: readonly unknown[] };
}

const interactions = readdirSync(recordingOf('gemini', 'js-genai')).flatMap((file) =>
  (JSON.parse(textOf('gemini', `js-genai/${file}`)) as { readonly interactions: readonly Interaction[] }).interactions.map(({ request, response }, at) => ({
    name: `js-genai/${file.replace('.json', '')}.${at + 1}`,
    url: request.url,
    request: request.bodySegments[0],
    status: response.statusCode,
    answer: response.bodySegments,
    isStream: request.url.includes(':streamGenerateContent'),
  })),
);
const successes = interactions.filter(({ status }) => status === 200);
const files = recordingsIn('gemini', framesOfGemini);

export const geminiRecordings = recordings(
  [
    ...files.streams,
    ...successes
      .filter(({ isStream }) => isStream)
      .map(({ name, answer }) => ({ name, bytes: Buffer.from(framesOfGemini(answer.map((one) => JSON.stringify(one))).join('')) })),
  ],
  [...files.wholes, ...successes.filter(({ isStream }) => !isStream).map(({ name, answer }) => ({ name, body: answer[0] }))],
);

/** Refusals of Gemini. */
export const geminiRefusals: readonly { readonly name: string; readonly status: number; readonly text: string }[] = [
  { name: 'vercel/429-retry-info', status: 429, text: textOf('gemini', 'vercel/429-retry-info.json') },
  ...interactions.filter(({ status }) => status !== 200).map(({ name, status, answer }) => ({ name, status, text: JSON.stringify(answer[0]) })),
];

/** Requests of real clients of Gemini. */
export const geminiRequests: readonly { readonly name: string; readonly url: string; readonly body: unknown }[] = [
  ...(JSON.parse(textOf('gemini', 'requests.json')) as { readonly name: string; readonly url: string; readonly body: unknown }[]),
  ...interactions.map(({ name, url, request }) => ({ name, url, body: request })),
];
