import { readdirSync, readFileSync } from 'node:fs';

/** The recordings, in the form that tests use. */
export interface Recording {
  /** `vercel/text`. */
  readonly name: string;
  /** The recorded bytes of a stream. */
  readonly bytes: Buffer;
}

const here = new URL('.', import.meta.url);
const files = ['vercel', 'handmade'].flatMap((folder) => readdirSync(new URL(folder, here)).map((file) => `${folder}/${file}`));
const read = (file: string) => readFileSync(new URL(file, here)).toString();

/** A request and its answer, as Google's SDK project recorded them. */
interface Interaction {
  readonly request: { readonly url: string; readonly bodySegments: readonly unknown[] };
  readonly response: { readonly statusCode: number; readonly headers: Readonly<Record<string, string>>; readonly bodySegments: readonly unknown[] };
}

const interactions = readdirSync(new URL('js-genai', here)).flatMap((file) =>
  (JSON.parse(read(`js-genai/${file}`)) as { readonly interactions: readonly Interaction[] }).interactions.map((one, at) => ({
    ...one,
    name: `js-genai/${file.replace('.json', '')}.${at + 1}`,
    isStream: one.request.url.includes(':streamGenerateContent'),
  })),
);

const bytesOf = (chunks: readonly string[]) => Buffer.from(chunks.map((chunk) => `data: ${chunk}\r\n\r\n`).join(''));

const streams: readonly Recording[] = [
  ...files
    .filter((file) => file.endsWith('.chunks.txt'))
    .map((file) => ({
      name: file.replace('.chunks.txt', ''),
      bytes: bytesOf(
        read(file)
          .split('\n')
          .filter((line) => line !== ''),
      ),
    })),
  ...interactions
    .filter(({ isStream, response }) => isStream && response.statusCode === 200)
    .map(({ name, response }) => ({ name, bytes: bytesOf(response.bodySegments.map((one) => JSON.stringify(one))) })),
];

export const answered = streams.filter(({ name }) => !name.includes('/fails-'));
export const stream = (name: string): Buffer => streams.find((one) => one.name === name)!.bytes;

/** Whole answers by name. */
export const wholes: readonly { readonly name: string; readonly body: unknown }[] = [
  ...files
    .filter((file) => file.endsWith('.json') && !file.includes('429'))
    .map((file) => ({ name: file.replace('.json', ''), body: JSON.parse(read(file)) as unknown })),
  ...interactions.filter(({ isStream, response }) => !isStream && response.statusCode === 200).map(({ name, response }) => ({ name, body: response.bodySegments[0] })),
];

/** Refusals by name. */
export const refusals: readonly { readonly name: string; readonly status: number; readonly text: string }[] = [
  { name: 'vercel/429-retry-info', status: 429, text: read('vercel/429-retry-info.json') },
  ...interactions
    .filter(({ response }) => response.statusCode !== 200)
    .map(({ name, response }) => ({ name, status: response.statusCode, text: JSON.stringify(response.bodySegments[0]) })),
];

/** Requests captured from real clients. */
export const requests: readonly { readonly name: string; readonly url: string; readonly body: unknown }[] = [
  ...(JSON.parse(read('requests.json')) as { readonly name: string; readonly url: string; readonly body: unknown }[]),
  ...interactions.map(({ name, request }) => ({ name, url: request.url, body: request.bodySegments[0] })),
];
