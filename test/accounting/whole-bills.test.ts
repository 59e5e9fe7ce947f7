/* What an answer says that its request was charged is the sum of what was booked for it. */
import { beforeAll, expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';
import { visitorsOf } from '../api/native/visitors.ts';

const { server, upstream } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `  chat: { targets: [{ provider: fake }] }
  checked: { targets: [{ provider: fake }] }
  judge: { targets: [{ provider: fake }] }
guard: { checks: [{ name: judge, when: [before, after], kind: moderation, model: judge, action: deny, models: [checked] }] }
defaults: { embedding: built-in-embedding }
`,
}));
const { admin } = visitorsOf(server);
let dataset: string;

beforeAll(async () => {
  dataset = (await admin('POST', '/user/add-dataset', { dataset: 'ponds' })).body['dataset'] as string;
  await admin('POST', '/server/train', { content: 'The heron lives at the north pond.', force_dataset: dataset });
  const code = 'export default async ({ search, llm }) => llm((await search("Where does the heron live?")).length + " passages?")';
  await admin('POST', '/server/mine/plugins', { plugin_name: 'finder', title: 'Finder', kind: 'script', script: { code, hosts: [] } });
});

const message = 'Where does the heron live?';
const asksPlugin = { plugin_name: 'finder', plugin_values: {} };
const conversation = [
  { user: 'me', message: 'Where does the heron live?' },
  { user: 'gpt', message: 'At the pond.' },
  { user: 'me', message: 'And in winter?' },
];

test.each<[what: string, rows: number, path: string, body: () => object]>([
  ['looks up a dataset', 2, '/server/query', () => ({ message, model: 'chat', dataset })],
  ['looks up a dataset, as a stream', 2, '/server/query_stream', () => ({ message, model: 'chat', dataset })],
  ['words its question anew', 3, '/server/query', () => ({ message: conversation, model: 'chat', dataset })],
  ['is checked by a model', 3, '/server/query', () => ({ message, model: 'checked', dataset: 'none' })],
  ['is checked by a model, as a stream', 3, '/server/query_stream', () => ({ message, model: 'checked', dataset: 'none' })],
  ['runs a script that searches', 2, '/server/execute-plugin', () => ({ ...asksPlugin, model: 'chat' })],
  ['runs a script that is checked', 4, '/server/query-plugin', () => ({ ...asksPlugin, model: 'checked' })],
])('a question that %s shows what all of its %i calls cost', async (_, rows, path, body) => {
  upstream.script(always(ok({ text: '{"flagged":false}' })));
  const answer = await admin('POST', path, { ...body(), usage: true });
  expect(answer.status).toBe(200);
  const whole = answer.body['usage'] ?? lastOf(String(answer.body['text'])).usage;
  const booked = async () => {
    const { body: log } = await admin('GET', `/server/mine/logs/${answer.headers.get('x-request-id')}`);
    return [log, ...((log['steps'] ?? []) as object[])].map((row) => (row as { readonly planTokens: number }).planTokens);
  };
  await expect.poll(async () => (await booked()).length).toBe(rows);
  const all = await booked();
  expect(all.every((tokens) => tokens > 0)).toBe(true);
  expect(whole).toMatchObject({ plan_tokens: all.reduce((sum, tokens) => sum + tokens, 0) });
});

const lastOf = (text: string) => JSON.parse(text.split('@|@sep@|@').at(-1)!) as { readonly usage: unknown };
