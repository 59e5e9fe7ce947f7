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

/** All streams; one line of `.chunks.txt` is the data of one frame, whose `event:` line is its type. */
export const streams: readonly Recording[] = files
  .filter((file) => file.endsWith('.chunks.txt'))
  .map((file) => {
    const lines = read(file)
      .split('\n')
      .filter((line) => line !== '');
    const frames = lines.map((line) => `event: ${/"type":\s*"(\w+)"/.exec(line)?.[1]}\ndata: ${line}\n\n`);
    return { name: file.replace('.chunks.txt', ''), bytes: Buffer.from(frames.join('')) };
  });

export const answered = streams.filter(({ name }) => !name.includes('/fails-'));
export const stream = (name: string): Buffer => streams.find((one) => one.name === name)!.bytes;

/** Whole answers by name. */
export const wholes: readonly { readonly name: string; readonly body: unknown }[] = files
  .filter((file) => file.endsWith('.json'))
  .map((file) => ({ name: file.replace('.json', ''), body: JSON.parse(read(file)) as unknown }));
