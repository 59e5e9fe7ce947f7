import { readdirSync, readFileSync } from 'node:fs';

/** The recordings, in the form that tests use. */
export interface Recording {
  /** `azure-text` */
  readonly name: string;
  /** The recorded bytes of a stream. */
  readonly bytes: Buffer;
}

const here = new URL('vercel/', import.meta.url);
const files = readdirSync(here);
const read = (file: string) => readFileSync(new URL(file, here)).toString();

/** All streams that end well; one line of `.chunks.txt` is the data of one frame, whose `event:` line is its type. */
export const streams: readonly Recording[] = files
  .filter((file) => file.endsWith('.chunks.txt') && !file.includes('-error'))
  .map((file) => ({ name: file.replace('.chunks.txt', ''), bytes: framed(read(file)) }));

/** A stream that fails because the quota is exceeded. */
export const failed: Buffer = framed(read('openai-error.chunks.txt'));

/** Whole answers by name. */
export const wholes: readonly { readonly name: string; readonly body: unknown }[] = files
  .filter((file) => file.endsWith('.json') && !file.includes('-error'))
  .map((file) => ({ name: file.replace('.json', ''), body: JSON.parse(read(file)) as unknown }));

function framed(text: string): Buffer {
  const lines = text.split('\n').filter((line) => line !== '');
  return Buffer.from(lines.map((line) => `event: ${/"type":\s*"([\w.]+)"/.exec(line)?.[1]}\ndata: ${line}\n\n`).join(''));
}
