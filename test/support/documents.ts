import { readFile } from 'node:fs/promises';
import type { TestServer } from './server.ts';

/** A document of `documents/`: LibreOffice's, but for the book, the mail and the scans, which were made by hand. */
export const documentBytes = (name: string): Promise<Uint8Array<ArrayBuffer>> => readFile(new URL(`documents/${name}`, import.meta.url));

export interface FileAnswer {
  readonly status: number;
  readonly response: string;
  readonly ret: string;
  readonly sent_filename: string;
  readonly text: string;
  readonly pages: readonly { readonly filename: string; readonly page_number: number; readonly text: string }[];
}

type Part = readonly [filename: string, content: Uint8Array<ArrayBuffer> | string];

/** Sends files to `/server/file`. */
export async function sendFiles(
  server: Pick<TestServer, 'url' | 'key'>,
  files: readonly Part[],
  {
    fields = {},
    headers = {},
    signal,
  }: { readonly fields?: Readonly<Record<string, string>>; readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal } = {},
): Promise<{ readonly http: number; readonly headers: Headers; readonly body: FileAnswer }> {
  const form = new FormData();
  for (const [filename, content] of files) form.append('file', new Blob([content]), filename);
  for (const [name, text] of Object.entries(fields)) form.append(name, text);
  const answer = await fetch(`${server.url}/server/file`, {
    method: 'POST',
    body: form,
    headers: { 'x-access-tokens': server.key, ...headers },
    ...(signal ? { signal } : {}),
  });
  return { http: answer.status, headers: answer.headers, body: (await answer.json()) as FileAnswer };
}
