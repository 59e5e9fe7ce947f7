/* The program as it is built and installed: `bin/build.js` leaves out parts of packages, leaves others beside dist/, and moves what is loaded late or started by path. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtAnew } from '../support/built.ts';
import { anyPlace, embedded } from '../support/databases.ts';
import { documentBytes, sendFiles } from '../support/documents.ts';
import { isSigned, keys } from '../support/fakes/signed.ts';
import { openLine } from '../support/fakes/vendors/line.ts';
import { startProcess, type ServerProcess } from '../support/server-process.ts';
import { chat } from '../support/server.ts';

let program: string;
let built: Awaited<ReturnType<typeof builtAnew>>;
beforeAll(async () => {
  built = await builtAnew();
  program = join(built.folder, 'dist/main.js');
});
afterAll(() => built.remove());

function asking({ url, key }: ServerProcess) {
  return async (path: string, body?: object) => {
    const answer = await fetch(url + path, {
      ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    return { status: answer.status, text: await answer.text() };
  };
}

test('providers, buckets and pages are reached over TLS through a proxy', async () => {
  const objects = new Map<string, Buffer>();
  const unsigned: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    if (request.headers.host === 'provider.example') {
      response
        .setHeader('content-type', 'application/json')
        .end('{"choices":[{"index":0,"message":{"content":"Through the tunnel."},"finish_reason":"stop"}]}');
    } else if (request.headers.host === 'localhost') {
      response.setHeader('content-type', 'text/html').end('<article><p>Herons eat fish, frogs and whatever else stands still.</p></article>');
    } else {
      if (!isSigned(request)) unsigned.push(request.url!);
      if (request.method === 'PUT') objects.set(request.url!, body);
      response.end((request.method === 'GET' && objects.get(request.url!)) || '<ListBucketResult></ListBucketResult>');
    }
  };
  const names = ['provider.example', 'bucket.example', 'localhost'];
  const line = await openLine([...names, '127.0.0.1', '[::1]'], (request, response) => void answer(request, response));
  const server = await startProcess(
    await anyPlace(),
    'https://provider.example',
    `outbound: { proxy: "${line.proxy}", caFile: "${line.caFile}", allow: ["https://localhost"] }
blobs: { s3: { endpoint: "https://bucket.example", region: ${keys.region}, bucket: ${keys.bucket}, accessKeyId: ${keys.accessKeyId}, secretAccessKey: ${keys.secretAccessKey} } }
`,
    { program },
  );
  const ask = asking(server);

  const said = await ask(chat, { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] });
  expect([said.status, said.text]).toEqual([200, expect.stringContaining('Through the tunnel.')]);

  const page = await ask('/server/execute-plugin', { plugin_name: 'page-summary', plugin_values: { url: 'https://localhost/herons' }, model: 'gpt-4o-mini' });
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('Through the tunnel.')]);

  const dataset = await ask('/server/mine/datasets', { name: 'birds' });
  const form = new FormData();
  form.append('file', new Blob(['Herons eat fish.']), 'herons.txt');
  const { id } = JSON.parse(dataset.text) as { id: string };
  const put = await fetch(`${server.url}/server/mine/datasets/${id}/files`, { method: 'POST', body: form, headers: { authorization: `Bearer ${server.key}` } });
  expect([put.status, [...objects.values()].map(String), unsigned]).toEqual([202, ['Herons eat fish.'], []]);

  const { items } = (await put.json()) as { items: { id: string }[] };
  const original = await ask(`/server/mine/datasets/${id}/files/${items[0]!.id}/original`);
  expect(original).toEqual({ status: 200, text: 'Herons eat fish.' });

  await server.stop();
  await line.close();
});

test('the process that reads documents loads no library of a format before it has a document of it', async () => {
  const loadedBy = async (file: string): Promise<readonly string[]> => {
    const program = await readFile(join(built.folder, 'dist/kit/documents', file), 'utf8');
    const names = [...program.matchAll(/^import (?:[^;]* from )?"([^"]+)";$/gm)].map(([, name]) => name!);
    return (await Promise.all(names.map(async (name) => (name.startsWith('./') ? loadedBy(name) : [name])))).flat();
  };
  const packages = new Set(await loadedBy('conversion-worker.js'));
  expect([...packages].filter((name) => !name.startsWith('node:'))).toEqual(['file-type']);
});

test('what is loaded late or started by path is found', { timeout: 300_000 }, async () => {
  const server = await startProcess(await embedded.place(), 'http://127.0.0.1:1', '', { program });
  const ask = asking(server);

  const documents = { 'report.docx': /Harbour report/, 'report.pdf': /Harbour report/, 'scan.pdf': /channel nine/ };
  for (const [name, text] of Object.entries(documents)) {
    const { http, body } = await sendFiles(server, [[name, await documentBytes(name)]]);
    expect([name, http, body.response, body.ret]).toEqual([name, 200, 'OK', expect.stringMatching(text)]);
  }

  const code = 'export default () => "A script ran.";';
  await ask('/server/mine/plugins', { plugin_name: 'own', title: 'Own', kind: 'script', script: { code } });
  const shaped = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } } };
  const answers: [path: string, body: object | undefined, text: RegExp][] = [
    ['/server/execute-plugin', { plugin_name: 'own', plugin_values: {}, model: 'built-in' }, /A script ran\./],
    ['/server/tokenizer', { content: 'two herons stand', model: 'gpt-4' }, /"response":"4"/],
    ['/server/tokenizer', { content: 'two herons stand', model: 'gpt-4o' }, /"response":"4"/],
    [chat, { model: 'built-in', messages: [{ role: 'user', content: 'An object, please.' }], response_format: shaped }, /\\"a\\":\d/],
    ['/v1/embeddings', { model: 'built-in-embedding', input: 'two herons stand' }, /"embedding":\[-?0\.\d/],
    ['/server/get-text-to-speech', { text: 'Two herons.' }, /^RIFF/],
    ['/openapi.json', undefined, /"openapi":/],
    ['/metrics', undefined, /dragoman_/],
  ];
  for (const [path, body, text] of answers) expect([path, await ask(path, body)]).toEqual([path, { status: 200, text: expect.stringMatching(text) as string }]);
  await server.stop();
});
