/* Names that users and tools choose are data: no file is ever made, read or served by one. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { idOf, newDataset } from '../api/datasets/people.ts';
import { plainText } from '../api/datasets/following.ts';
import { person, visitorsOf, type Answer, type Person, type Visited } from '../api/native/visitors.ts';
import { startScriptedMcp, toolNamed } from '../support/fakes/mcp.ts';
import { proves } from '../support/proves.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** Deep enough that each way up ends within it. */
const outside = mkdtempSync(join(tmpdir(), 'dragoman-names-'));
const home = join(outside, 'a', 'b', 'c');
let server: TestServer;
let all: Visited;
let ada: Person;
let dataset: string;
let id: number;
beforeAll(async () => {
  mkdirSync(home, { recursive: true });
  server = await startTestServer({ folder: home, convert: plainText });
  all = visitorsOf(server);
  ada = await person(all);
  dataset = await newDataset(ada, 'the names');
  id = await idOf(ada, dataset);
});
afterAll(async () => {
  await server.close();
  rmSync(outside, { recursive: true, force: true });
});

const hostile = [
  '../../canary',
  '../../../data/blobs/canary',
  '/canary',
  '/tmp/canary',
  '..\\..\\canary',
  '....//....//canary',
  '%2e%2e%2f%2e%2e%2fcanary',
  '%252e%252e%252fcanary',
  'file:///tmp/canary',
  'canary\u0000.txt',
  'canary\r\nx-canary: 1',
  'canary\u202Etxt.exe',
  '-rf canary',
  '$(touch canary)',
  '<img src=x onerror="canary()">',
  'CON',
  '.',
  '..',
  '~/canary',
  'canary'.repeat(900),
];

/** Where a name of a file would have made one. */
function madeByName(): readonly string[] {
  const within = readdirSync(outside, { recursive: true })
    .map(String)
    .filter((path) => path.includes('canary'));
  const elsewhere = ['/canary', '/tmp/canary', join(process.cwd(), 'canary'), join(process.env['HOME'] ?? '/', 'canary')].filter((path) => existsSync(path));
  return [...within, ...elsewhere];
}

/** Files that are kept: by their hashes alone. */
const blobs = () => readdirSync(join(home, 'data', 'blobs'), { recursive: true, withFileTypes: true }).flatMap((one) => (one.isFile() ? [one.name] : []));

async function form(path: string, name: string, fields: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const body = new FormData();
  for (const [field, value] of Object.entries(fields)) body.append(field, value);
  body.append('file', new Blob([`A text for ${path}.`]), name);
  const answer = await fetch(server.url + path, { method: 'POST', body, headers: { 'x-access-tokens': ada.key } });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Answer['body'] };
}

test(proves(['U-06', 'I-22'], 'no name that a user gives, in whatever field or path, makes a file or leads to one'), { timeout: 180_000 }, async () => {
  const before = blobs().length;
  for (const name of hostile) {
    const encoded = encodeURIComponent(name);
    const source = { dataset, files: [{ filename: name, source_string: name }] };
    const answers = await Promise.all([
      form('/server/file', name),
      form('/server/query_with_file', name, { message: 'Say exactly: heron' }),
      form('/server/train-with-file', name, { dataset }),
      form('/server/train-with-file', 'a.txt', { dataset: name }),
      form(`/server/mine/datasets/${id}/files`, name),
      form(`/server/mine/datasets/${encoded}/files`, 'a.txt'),
      ada.ask('POST', `/server/mine/datasets/${id}/files?filename=${encoded}`, 'bytes', { headers: { 'content-type': 'application/octet-stream' } }),
      ada.ask('GET', `/server/mine/datasets/${id}/files/${encoded}/original`),
      ada.ask('GET', `/server/mine/passages/${encoded}`),
      ada.ask('GET', `/server/mine/jobs/${encoded}`),
      ada.ask('POST', '/server/train', { content: `Of ${name}`, context: name, force_dataset: dataset }),
      ada.ask('POST', '/server/train', { content: 'x', force_dataset: name }),
      ada.ask('POST', '/server/train-with-array', { data: ['One text.'], dataset, filename: name, context: name }),
      ada.ask('POST', '/user/add-dataset', { dataset: name }),
      ada.ask('POST', '/server/delete-filename-from-dataset', { dataset, filename: name }),
      ada.ask('POST', '/server/copy-files-dataset', source),
      ada.ask('POST', '/server/query', { message: 'x', dataset: [name], model: name }),
      ada.ask('POST', '/server/execute-plugin', { plugin_name: name, plugin_values: {} }),
      ada.ask('POST', '/server/mine/personas', { name, prompt: 'x' }),
      ada.ask('POST', '/server/mine/secrets', { name, value: 'x' }),
      ada.ask('POST', '/server/mine/mcp-servers', { name, url: 'https://mcp.example/' }),
      ada.ask('POST', '/server/mine/plugins', { name, prompt: 'x' }),
      ada.ask('POST', '/user/user-api-key', { name }),
      ada.ask('POST', '/user/create-chat-session', { title: name, json_data: [] }),
      ada.ask('POST', '/server/get-text-to-speech', { text: ' ', voice: name, model: name }),
      ada.ask('POST', `/server/gencompat/v1beta/models/${encoded}:generateContent`, { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }),
    ]);
    expect([name, answers.map(({ status }) => status).filter((status) => status >= 500)]).toEqual([name, []]);
    expect([name, madeByName()]).toEqual([name, []]);
  }
  const kept = blobs();
  expect(kept.length).toBeGreaterThan(before);
  expect(kept.filter((name) => !/^[0-9a-f]{64}$/.test(name))).toEqual([]);
  const { body } = await ada.ask('GET', `/server/mine/datasets/${id}/files?limit=200`);
  const names = (body['items'] as { filename: string }[]).map(({ filename }) => filename);
  expect(names.length).toBeGreaterThan(5);
  // oxlint-disable-next-line no-control-regex -- these are what no name may have
  expect(names.filter((name) => /[/\\\u0000-\u001F\u202E]/.test(name) || name === '..' || name.length > 255)).toEqual([]);
});

test(proves('U-07', 'nor does a name that a tool has, or gives in its result'), { timeout: 120_000 }, async () => {
  const mcp = await startScriptedMcp(hostile.map((name) => toolNamed(name)));
  const folder = join(outside, 'a', 'b', 'd');
  mkdirSync(folder);
  const other = await startTestServer({ folder, yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  onTestFinished(other.close);
  const bob = await person(visitorsOf(other));
  const tools = hostile.map((name) => toolNamed(name));
  const resource = (name: string) => ({ type: 'resource', resource: { uri: `file:///${name}`, name, text: 'canary', mimeType: 'text/plain' } });
  mcp.script(({ method }) => (method === 'tools/list' ? { tools: [...tools, toolNamed('good')] } : { content: hostile.map(resource) }));
  const made = await bob.ask('POST', '/server/mine/mcp-servers', { name: 'hostile', url: mcp.url });
  expect(made.status).toBe(201);
  const listed = await bob.ask('GET', '/server/list-mcp-tools');
  expect([listed.status, JSON.stringify(listed.body).includes('good')]).toEqual([200, true]);
  const server_id = made.body['id'] as number;
  const answer = await bob.ask('POST', '/server/query', {
    message: 'Call hostile__good now.',
    enabled_mcp_tools: ['good', ...hostile].map((name) => `${server_id}_${name}`.slice(0, 300)),
  });
  expect([answer.status, mcp.asked.filter(({ method }) => method === 'tools/call').length]).toEqual([200, 1]);
  expect(madeByName()).toEqual([]);
});

test.each([
  ['page.html', '<!doctype html><script>alert(1)</script>', 'text/html'],
  ['drawing.svg', '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', 'image/svg+xml'],
  ['feed.xml', '<?xml version="1.0"?><x/>', 'application/xml'],
  ['code.js', 'alert(1)', 'text/javascript'],
  ['a b;c.html', '<script>alert(1)</script>', 'text/html;charset=utf-8'],
])(
  proves('U-08', 'an original such as %s comes back as an attachment, which no browser shows as what it is'),
  { timeout: 120_000 },
  async (name, content, type) => {
    const body = new FormData();
    body.append('file', new Blob([content], { type }), name);
    const sent = await fetch(`${server.url}/server/mine/datasets/${id}/files`, { method: 'POST', body, headers: { 'x-access-tokens': ada.key } });
    const [file] = ((await sent.json()) as { items: { id: number }[] }).items;
    const address = `/server/mine/datasets/${id}/files/${file!.id}`;
    await expect.poll(async () => (await ada.ask('GET', address)).body['state'], { timeout: 30_000 }).toBe('done');
    const original = await fetch(`${server.url}${address}/original`, { headers: { 'x-access-tokens': ada.key } });
    expect(await original.text()).toBe(content);
    const of = (header: string) => original.headers.get(header);
    expect(of('content-disposition')).toBe(`attachment; filename*=UTF-8''${encodeURIComponent(name)}`);
    expect([of('x-content-type-options'), of('content-security-policy')]).toEqual(['nosniff', expect.stringMatching(/^sandbox; default-src 'none'/)]);
    expect(of('content-type')).toMatch(/^(?:text\/plain|application\/octet-stream)\b/);
  },
);
