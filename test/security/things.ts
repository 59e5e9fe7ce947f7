/** One of each thing that a user can have, and every request that names one. */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { until } from '../support/cluster.ts';
import type { Person, Visited } from '../api/native/visitors.ts';

/** What names a thing in an address or a body: an id, or a full name. */
export type Things = Readonly<Record<keyof typeof nobodys, string | number>>;

/** Names that nobody's things have. */
export const nobodys = {
  key: 999_001,
  dataset: 999_002,
  datasetName: 'user_custom_999_nothing_content',
  file: 999_003,
  filename: 'nothing.txt',
  passage: 999_004,
  job: 'job_0000000000000000000000',
  numberedJob: 999_005,
  source: 999_006,
  persona: 999_007,
  plugin: 999_008,
  pluginName: 'no_such_plugin',
  secret: 999_009,
  server: 999_010,
  agent: 999_011,
  run: '999999999999012',
  chat: '00000000-0000-4000-8000-000000000013',
  message: 999_014,
  session: '00000000-0000-4000-8000-000000000000',
  team: 999_015,
  request: 'req_0000000000000000000000',
};

/** The word that every text of a user's things has, and no name of them. */
export const canary = (who: Pick<Person, 'id'>) => `heron-${who.id}`;

/** Makes one of each for a user. */
export async function everythingOf(all: Visited, who: Person): Promise<Things> {
  const { ask } = who;
  const secretText = canary(who);
  const made = async (path: string, body: object, status = 201): Promise<Record<string, unknown>> => {
    const answer = await ask('POST', path, body);
    expect([path, answer.status, answer.body]).toEqual([path, status, expect.anything()]);
    return answer.body;
  };
  const of = async (path: string, body: object) => Number((await made(`/server/mine/${path}`, body))['id']);
  const dataset = await made('/server/mine/datasets', { name: `papers ${who.id}` });
  const filename = `paper-${who.id}.txt`;
  const uploaded = async (path: string, name: string, text: string, fields: Record<string, string> = {}) => {
    const form = new FormData();
    for (const [field, value] of Object.entries(fields)) form.set(field, value);
    form.set('file', new Blob([text]), name);
    const answer = await fetch(all.server.url + path, { method: 'POST', headers: { 'x-access-tokens': who.key }, body: form });
    return (await answer.json()) as Record<string, unknown>;
  };
  const files = `/server/mine/datasets/${Number(dataset['id'])}/files`;
  const { items } = await uploaded(files, filename, `The ${secretText} is the bird of number ${who.id}.`);
  const [item] = items as { id: number; jobId: number }[];
  await until(async () => (await ask('GET', `/server/mine/jobs/${item!.jobId}`)).body['state'] === 'done');
  const passages = await ask('GET', `${files}/${item!.id}/passages`);
  const training = await uploaded('/server/train-with-file', 'fish.txt', `The ${secretText} eats fish.`, {
    dataset: String(dataset['dataset']),
    async: 'true',
  });
  const agent = await of('agents', { name: 'Keeper', mode: 'single', instructions: `Speak of the ${secretText}.`, model: 'built-in' });
  const run = await made('/server/execute-agent', { agent_id: agent, message: `Say exactly: ${secretText}`, streaming: false }, 200);
  const session = await made('/user/create-chat-session', { title: secretText, json_data: [{ user: 'me', message: secretText }] }, 200);
  const chat = String((await made('/server/mine/chats', { title: secretText }))['id']);
  const message = await made(`/server/mine/chats/${chat}/messages`, { user: 'me', message: secretText });
  const pluginName = `keeper_${who.id}`;
  const { body: team } = await all.admin('POST', '/server/admin/teams', { name: `crew ${who.id}`, plan: 'unlimited', members: [who.id], admins: [who.id] });
  const asked = await ask('POST', '/server/chatcompat/v1/chat/completions', {
    model: 'built-in',
    messages: [{ role: 'user', content: `Say exactly: ${secretText}` }],
  });
  const request = asked.headers.get('x-request-id')!;
  await until(async () => (await ask('GET', `/server/mine/logs/${request}`)).status === 200); // rows are written a moment later
  return {
    key: await of('keys', { name: secretText, scopes: ['passthrough'] }),
    dataset: Number(dataset['id']),
    datasetName: String(dataset['dataset']),
    file: item!.id,
    filename,
    passage: (passages.body['items'] as { id: number }[])[0]!.id,
    job: String(training['job_id']),
    numberedJob: item!.jobId,
    source: await of(`datasets/${Number(dataset['id'])}/sources`, { type: 'page', url: `http://127.0.0.1:9/${secretText}`, everyHours: 24 }),
    persona: await of('personas', { name: 'Keeper', prompt: `Speak of the ${secretText}.` }),
    plugin: await of('plugins', { plugin_name: pluginName, title: 'Keeper', kind: 'prompt', template: `Say exactly: ${secretText} {{it}}` }),
    pluginName,
    secret: await of('secrets', { name: 'KEEPER', value: secretText }),
    server: await of('mcp-servers', { name: 'Keeper', url: `https://mcp.example.org/${secretText}` }),
    agent,
    run: String(run['execution_id']),
    chat,
    message: Number(message['id']),
    session: String(session['session_id']),
    team: Number(team['id']),
    request,
  };
}

export interface ThingRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

/** What a member of an address stands for, by the name before it. */
const members: Readonly<Record<string, keyof Things>> = {
  keys: 'key',
  datasets: 'dataset',
  files: 'file',
  sources: 'source',
  passages: 'passage',
  jobs: 'numberedJob',
  personas: 'persona',
  plugins: 'plugin',
  secrets: 'secret',
  'mcp-servers': 'server',
  agents: 'agent',
  runs: 'run',
  chats: 'chat',
  messages: 'message',
  teams: 'team',
  logs: 'request',
};
/** Members of addresses that name no thing. */
const parts: Readonly<Record<string, string>> = { tools: 'look', versions: '1' };

/** Bodies of requests that have no example. */
const bodies: Readonly<Record<string, object>> = {
  'POST /server/mine/datasets/{id}/sources': { type: 'page', url: 'http://127.0.0.1:9/', everyHours: 24 },
  'PATCH /server/mine/datasets/{id}/sources/{source}': { everyHours: 12 },
  'POST /server/mine/runs/{id}/approve': { call: 'call_1', approved: true },
  'POST /server/mine/runs/{id}/answer': { question: 'question_1', action: 'accept', content: { text: 'yes' } },
};

interface Operation {
  readonly operationId: string;
}

/** Every request below `/server/mine` that names a thing in its address, out of the document that is made from the routes. */
export async function addressed(url: string): Promise<readonly ((things: Things) => ThingRequest)[]> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
  const examples = JSON.parse(readFileSync(new URL('../../src/faces/monitoring/examples.json', import.meta.url), 'utf8')) as Record<
    string,
    { request?: object }
  >;
  return Object.entries(paths)
    .filter(([path]) => path.startsWith('/server/mine/') && path.includes('{'))
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([word, { operationId }]) => {
        const method = word.toUpperCase();
        const body = bodies[`${method} ${path}`] ?? examples[operationId]?.request ?? (method === 'GET' || method === 'DELETE' ? undefined : {});
        const filled = (things: Things) => (_: string, noun: string) => `/${noun}/${parts[noun] ?? things[members[noun] ?? missing(noun, path)]}`;
        return (things: Things) => ({ method, path: path.replaceAll(/\/([\w-]+)\/\{\w+\}/g, filled(things)), ...(body ? { body } : {}) });
      }),
    );
}

const missing = (noun: string, path: string): never => expect.fail(`What does a member behind ${noun} stand for in ${path}?`);

/** Every request of the native interface that names a thing in its body. */
export const named: readonly ((things: Things) => ThingRequest)[] = [
  ({ key }) => ({ method: 'DELETE', path: '/user/user-api-key', body: { id: key } }),
  ({ datasetName }) => ({ method: 'POST', path: '/server/get-dataset-results', body: { dataset: datasetName, message: 'Which bird?' } }),
  ({ datasetName }) => ({ method: 'POST', path: '/server/query', body: { message: 'Which bird?', dataset: datasetName, model: 'built-in' } }),
  ({ datasetName }) => ({ method: 'POST', path: '/server/query_stream', body: { message: 'Which bird?', dataset: datasetName, model: 'built-in' } }),
  ({ datasetName }) => ({ method: 'POST', path: '/server/follow-up-questions', body: { message: 'Which bird?', dataset: datasetName, model: 'built-in' } }),
  ({ persona }) => ({ method: 'POST', path: '/server/query', body: { message: 'Which bird?', persona, model: 'built-in' } }),
  ({ datasetName }) => ({ method: 'POST', path: '/server/get-dataset-info', body: { dataset: datasetName } }),
  ({ datasetName }) => ({ method: 'POST', path: '/user/assign-dataset', body: { dataset: datasetName, email: 'admin@localhost', permissions: 'read' } }),
  ({ datasetName }) => ({
    method: 'POST',
    path: '/user/update-permission-dataset',
    body: { dataset: datasetName, email: 'admin@localhost', permissions: 'edit' },
  }),
  ({ datasetName }) => ({ method: 'POST', path: '/user/deassign-dataset', body: { dataset: datasetName, email: 'admin@localhost' } }),
  ({ datasetName }) => ({ method: 'POST', path: '/user/delete-dataset', body: { dataset: datasetName } }),
  ({ datasetName, filename }) => ({ method: 'POST', path: '/server/delete-filename-from-dataset', body: { dataset: datasetName, filename } }),
  ({ datasetName }) => ({ method: 'POST', path: '/server/train', body: { content: 'A stolen line.', force_dataset: datasetName } }),
  ({ datasetName }) => ({ method: 'POST', path: '/server/train-with-array', body: { data: ['A stolen line.'], dataset: datasetName } }),
  ({ job }) => ({ method: 'POST', path: '/server/train-with-file-status', body: { job_id: job } }),
  ({ pluginName }) => ({ method: 'POST', path: '/server/execute-plugin', body: { plugin_name: pluginName, plugin_values: {}, model: 'built-in' } }),
  ({ pluginName }) => ({ method: 'POST', path: '/server/query-plugin', body: { message: 'x', plugin_name: pluginName, plugin_values: {}, model: 'built-in' } }),
  ({ server }) => ({ method: 'PUT', path: '/server/update-mcp-server', body: { server_id: server, description: 'stolen' } }),
  ({ server }) => ({ method: 'DELETE', path: '/server/delete-mcp-server', body: { server_id: server } }),
  ({ agent }) => ({ method: 'POST', path: '/server/execute-agent', body: { agent_id: agent, message: 'Say exactly: hello', streaming: false } }),
  ({ run }) => ({ method: 'POST', path: '/server/get-deep-agent', body: { deep_agent_id: Number(run) } }),
  ({ session }) => ({ method: 'POST', path: '/user/get-chat-session', body: { session_id: session } }),
  ({ session }) => ({ method: 'POST', path: '/user/append-chat', body: { session_id: session, chat_title: 'x', chats: [{ user: 'me', message: 'stolen' }] } }),
  ({ session }) => ({ method: 'POST', path: '/user/update-chat-session-title', body: { session_id: session, new_title: 'stolen' } }),
  ({ session }) => ({ method: 'POST', path: '/user/copy-chat', body: { chat_id: session, email: 'admin@localhost' } }),
  ({ session }) => ({ method: 'POST', path: '/user/delete-chat-session', body: { session_id: session } }),
];

/** All that a user reads of their things. */
export async function readBy(who: Person, things: Things): Promise<readonly unknown[]> {
  const own = ['keys', 'datasets', 'personas', 'plugins', 'secrets', 'mcp-servers', 'agents', 'runs', 'chats', `datasets/${things.dataset}/files`];
  const below = [`datasets/${things.dataset}/sources`, `chats/${things.chat}`, `agents/${things.agent}/versions`, `datasets/${things.dataset}/grants`];
  const read = [...own, ...below].map(async (path) => [path, (await who.ask('GET', `/server/mine/${path}`)).body]);
  const session = who.ask('POST', '/user/get-chat-session', { session_id: things.session }).then(({ body }) => body);
  const answers = await Promise.all([...read, session]);
  return JSON.parse(JSON.stringify(answers, (name, value: unknown) => (name === 'lastUsedAt' ? undefined : value))) as readonly unknown[];
}
