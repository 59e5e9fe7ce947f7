import { readdirSync, readFileSync } from 'node:fs';

/** The recordings, in the form that tests use. */
export interface Recording {
  /** `vercel/openai-text`. */
  readonly name: string;
  /** The recorded bytes of a stream. */
  readonly bytes: Buffer;
}

const here = new URL('.', import.meta.url);
const files = ['vercel', 'handmade'].flatMap((folder) => readdirSync(new URL(folder, here)).map((file) => `${folder}/${file}`));
const read = (file: string) => readFileSync(new URL(file, here));

/** All streams; one line of `.chunks.txt` is the data of one frame. */
export const streams: readonly Recording[] = files.flatMap((file) => {
  if (file.endsWith('.sse')) return [{ name: file.replace('.sse', ''), bytes: read(file) }];
  if (!file.endsWith('.chunks.txt')) return [];
  const lines = read(file).toString().split('\n').filter((line) => line !== '');
  return [{ name: file.replace('.chunks.txt', ''), bytes: Buffer.from([...lines, '[DONE]'].map((line) => `data: ${line}\n\n`).join('')) }];
});

export const answered = streams.filter(({ name }) => !name.includes('/fails-'));
export const stream = (name: string): Buffer => streams.find((one) => one.name === name)!.bytes;

/** Whole answers by name. */
export const wholes: readonly { readonly name: string; readonly body: unknown }[] = files
  .filter((file) => file.endsWith('.json') && !file.includes('error'))
  .map((file) => ({ name: file.replace('.json', ''), body: JSON.parse(read(file).toString()) as unknown }));

export const refusalText = (name: string): string => read(`${name}.json`).toString();
