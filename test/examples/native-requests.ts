/* Requests for the operations of the native interface and of /server/mine. */
import type { Step } from './step.ts';

interface Asked extends Pick<Step, 'body' | 'form' | 'keeps' | 'credential' | 'until'> {
  /** With the `?`. */
  readonly query?: string;
}

/** @param path `{id:persona}` is the member `id` of the path, filled with what was kept as `persona` */
function shown(face: string, method: string, path: string, { query = '', ...asked }: Asked = {}): Step {
  const words = path.replaceAll(/\{(\w+):\w+\}/g, '$1').match(/[A-Za-z0-9]+/g)!;
  return { operation: [face, method.toLowerCase(), ...words].join('-'), method, path: path.replaceAll(/\{\w+:(\w+)\}/g, '{$1}') + query, ...asked };
}

const own = (method: string, path: string, asked?: Asked) => shown('mine', method, `/server/mine${path}`, asked);
const server = (path: string, asked?: Asked) => shown('native', 'POST', `/server/${path}`, asked);
const user = (path: string, asked?: Asked) => shown('native', 'POST', `/user/${path}`, asked);

const everybody = { items: [{ everybody: true, right: 'read' }] };
/** Is it known of the first key when it was last used? That is written a moment later. */
const isUsed = (answer: unknown) => (answer as { readonly items: readonly { readonly lastUsedAt: unknown }[] }).items[0]?.lastUsedAt !== null;
const isDone = (answer: unknown) => /"(?:done|succeeded)"/.test(JSON.stringify(answer));
const facts = { name: 'file', filename: 'harbour.txt', text: 'The harbour of Lisbon was opened in 1887. It has nine docks.' };

/** The five addresses that things of users have, and those of their grants, but for DELETE. */
const thing = (kind: string, name: string, body: object, keeps: Readonly<Record<string, string>> = { [name]: 'id' }): readonly Step[] => [
  own('POST', `/${kind}`, { body, keeps }),
  own('GET', `/${kind}`),
  own('GET', `/${kind}/{id:${name}}`),
  own('PUT', `/${kind}/{id:${name}}`, { body }),
  own('PUT', `/${kind}/{id:${name}}/grants`, { body: everybody }),
  own('GET', `/${kind}/{id:${name}}/grants`),
];

const removed = (kind: string, name: string) => own('DELETE', `/${kind}/{id:${name}}`);

const account: readonly Step[] = [
  own('GET', ''),
  shown('mine', 'GET', '/server/session'),
  own('PUT', '/password', { body: { new: 'a long and secret sentence' } }),
  user('get-token', { body: { email: 'admin@localhost', password: 'a long and secret sentence' }, keeps: { token: 'response.access_token' } }),
  shown('mine', 'POST', '/server/session', { body: { email: 'admin@localhost', password: 'a long and secret sentence' } }),
  shown('mine', 'DELETE', '/server/session', { credential: '{token}' }),
  user('get-token-with-api-key', { body: { email: 'admin@localhost', api_key: 'k'.repeat(64) } }),
  shown('native', 'POST', '/user/validate_token_with_full_user'),
  own('POST', '/keys', { body: { name: 'laptop', scopes: ['passthrough'], monthlyTokens: 100_000 }, keeps: { ownKey: 'id' } }),
  own('GET', '/keys', { until: isUsed }),
  own('GET', '/keys/{id:ownKey}'),
  own('PATCH', '/keys/{id:ownKey}', { body: { name: 'new laptop' } }),
  own('POST', '/keys/{id:ownKey}/rotate', { body: { graceSeconds: 3600 } }),
  own('DELETE', '/keys/{id:ownKey}'),
  user('user-api-key', { body: { name: 'script', token_scopes: 'query,datasets' }, keeps: { script: 'id' } }),
  user('get-user-api-keys'),
  shown('native', 'DELETE', '/user/user-api-key', { body: { id: '{script}' } }),
  shown('admin', 'GET', '/server/admin/votes'),
  { operation: '', path: '/server/admin/teams', body: { name: 'harbour', plan: 'unlimited', members: [1], admins: [1] }, keeps: { crew: 'id' } },
  own('GET', '/teams/{id:crew}'),
  own('PATCH', '/teams/{id:crew}', { body: { members: [1] } }),
  own('GET', '/teams/{id:crew}/keys', { until: isUsed }),
  { operation: '', method: 'DELETE', path: '/server/admin/teams/{crew}' },
];

const knowledge: readonly Step[] = [
  ...thing('datasets', 'dataset', { name: 'Harbours' }, { dataset: 'id', datasetName: 'dataset' }),
  own('POST', '/datasets/{id:dataset}/files', { form: facts, keeps: { file: 'items.0.id', job: 'items.0.jobId' } }),
  own('GET', '/jobs/{id:job}', { until: isDone }),
  own('GET', '/jobs', { query: '?kind=ingestion' }),
  own('GET', '/datasets/{id:dataset}/files'),
  own('GET', '/datasets/{id:dataset}/files/{file:file}'),
  own('GET', '/datasets/{id:dataset}/files/{file:file}/passages', { keeps: { passage: 'items.0.id' } }),
  own('GET', '/passages/{id:passage}'),
  own('PUT', '/datasets/{id:dataset}/files/{file:file}/grants', { body: everybody }),
  own('GET', '/datasets/{id:dataset}/files/{file:file}/grants'),
  server('get-dataset-results', { body: { dataset: '{datasetName}', message: 'When was the harbour opened?', limit: 3 } }),
  server('query', { body: { message: 'When was the harbour of Lisbon opened?', dataset: '{datasetName}', model: 'built-in' }, keeps: { answer: 'uuid' } }),
  server('vote-down', { body: { uuid: '{answer}' } }),
  server('get-datasets'),
  server('get-dataset-info', { body: { dataset: '{datasetName}' } }),
  server('get-all-files-ingested'),
  user('get-datasets-with-permissions'),
  user('assign-dataset', { body: { dataset: '{datasetName}', email: 'ada@example.org', permissions: 'read' } }),
  user('update-permission-dataset', { body: { dataset: '{datasetName}', email: 'ada@example.org', permissions: 'edit' } }),
  user('deassign-dataset', { body: { dataset: '{datasetName}', email: 'ada@example.org' } }),
  user('add-dataset', { body: { dataset: 'Notes' }, keeps: { notes: 'response' } }),
  server('copy-files-dataset', { body: { dataset: 'Notes', files: [{ source_string: '{datasetName}', filename: 'harbour.txt' }] } }),
  server('train', { body: { content: 'The lighthouse is forty metres high.', force_dataset: 'Notes' } }),
  server('train-with-array', { body: { data: ['The pier is made of oak.', 'It was built in 1850.'], dataset: 'Notes', filename: 'pier.txt' } }),
  server('train-with-file', { form: { ...facts, filename: 'quay.txt', fields: { dataset: 'Notes' } } }),
  {
    ...server('train-with-file', { form: { ...facts, filename: 'docks.txt', fields: { dataset: 'Notes', async: 'true' } }, keeps: { training: 'job_id' } }),
    operation: '', // the document shows the answer of the one that waits
  },
  server('train-with-file-status', { body: { job_id: '{training}' }, until: isDone }),
  server('delete-filename-from-dataset', { body: { dataset: '{datasetName}', filename: 'harbour.txt' } }),
  user('delete-dataset', { body: { dataset: 'Notes' } }),
  removed('datasets', 'dataset'),
];

const greetingPlugin = {
  plugin_name: 'greeting',
  title: 'Greeting',
  kind: 'prompt',
  file_mode: true,
  template: 'Say exactly: hello {{name}}',
  fields: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};

const acting: readonly Step[] = [
  ...thing('personas', 'persona', { name: 'Pirate', description: 'Speaks like one.', prompt: 'Answer as a pirate would.' }),
  removed('personas', 'persona'),
  server('get-personas'),
  ...thing('plugins', 'plugin', greetingPlugin),
  own('GET', '/plugins/{id:plugin}/export'),
  server('get-plugins'),
  server('execute-plugin', { body: { plugin_name: 'greeting', plugin_values: { name: 'Ada' }, model: 'built-in' } }),
  server('query-plugin', { body: { message: 'Say exactly: hello', plugin_name: 'greeting', plugin_values: { name: 'Ada' }, model: 'built-in' } }),
  server('execute-plugin-with-file', { form: { ...facts, fields: { plugin_name: 'greeting', plugin_values: '{"name": "Ada"}', model: 'built-in' } } }),
  removed('plugins', 'plugin'),
  own('POST', '/plugins/import', { body: { format: 'dragoman-plugin', version: 1, plugin: greetingPlugin } }),
  ...thing('secrets', 'secret', { name: 'WEATHER_KEY', value: 'a secret value' }),
  server('get-secrets'),
  removed('secrets', 'secret'),
  server('follow-up-questions', { body: { message: 'What is a lighthouse?', model: 'built-in' } }),
  server('query_with_file', { form: { ...facts, fields: { message: 'When was the harbour of Lisbon opened?', model: 'built-in' } } }),
  server('file', { form: facts }),
  ...thing('mcp-servers', 'tools', { name: 'Weather', url: 'https://mcp.example.org/mcp', description: 'Forecasts.' }),
  removed('mcp-servers', 'tools'),
  server('add-mcp-server', { body: { server_name: 'Weather', server_url: 'https://mcp.example.org/mcp' }, keeps: { added: 'server_id' } }),
  server('list-mcp-servers'),
  server('list-mcp-whitelisted-servers'),
  shown('native', 'PUT', '/server/update-mcp-server', { body: { server_id: '{added}', description: 'Forecasts of the weather.' } }),
  shown('native', 'DELETE', '/server/delete-mcp-server', { body: { server_id: '{added}' } }),
  ...thing('agents', 'agent', {
    name: 'Harbour master',
    description: 'Knows the harbour.',
    mode: 'single',
    instructions: 'Answer in one sentence.',
    model: 'built-in',
    variables: { type: 'object', properties: { tone: { type: 'string' } } },
  }),
  own('GET', '/agents/{id:agent}/versions', { keeps: { agentVersion: 'items.0.version' } }),
  own('GET', '/agents/{id:agent}/versions/{version:agentVersion}'),
  own('POST', '/agents/{id:agent}/publish', { body: { version: '{agentVersion}' } }),
  server('list-agents'),
  server('execute-agent', {
    body: { agent_id: '{agent}', message: 'Say exactly: hello', variables: { tone: 'friendly' }, streaming: false },
    keeps: { run: 'execution_id' },
  }),
  own('GET', '/runs', { query: '?kind=agent' }),
  own('GET', '/runs/{id:run}'),
  removed('agents', 'agent'),
  server('get-models'),
  server('tokenizer', { body: { content: 'How many tokens is this?', model: 'gpt-4o' } }),
  server('list-tts-voices'),
];

const chats: readonly Step[] = [
  ...thing('chats', 'chat', { title: 'Lighthouses', folder: 'travel' }),
  own('POST', '/chats/{id:chat}/messages', { body: { user: 'me', message: 'How high is the lighthouse?' }, keeps: { message: 'id' } }),
  own('PATCH', '/chats/{id:chat}/messages/{message:message}', { body: { user: 'me', message: 'How old is the lighthouse?' } }),
  own('DELETE', '/chats/{id:chat}/messages/{message:message}'),
  removed('chats', 'chat'),
  user('create-chat-session', {
    body: { title: 'Docks', json_data: [{ user: 'me', message: 'How many docks are there?' }] },
    keeps: { session: 'session_id' },
  }),
  user('get-chats'),
  user('get-chat-session', { body: { session_id: '{session}' } }),
  user('append-chat', { body: { session_id: '{session}', chat_title: 'Docks', chats: [{ user: 'gpt', message: 'There are nine.' }] } }),
  user('update-chat-session-json', { body: { session_id: '{session}', json_data: [{ user: 'me', message: 'How many docks has Lisbon?' }] } }),
  user('update-chat-session-title', { body: { session_id: '{session}', new_title: 'Docks of Lisbon' } }),
  user('copy-chat', { body: { chat_id: '{session}', email: 'ada@example.org' } }),
  user('delete-chat-session', { body: { session_id: '{session}' } }),
];

const counters: readonly Step[] = [
  user('admin-get-all-users-with-tokens', { body: { email: 'ada@example.org' } }),
  user('admin-update-user-tokens', { body: { id: '{ada}', tokens: 100_000 } }),
  user('admin-update-user-train-tokens', { body: { id: '{ada}', tokens: 50_000 } }),
];

export const nativeSteps: readonly Step[] = [
  { operation: '', path: '/server/admin/users', body: { email: 'ada@example.org' }, keeps: { ada: 'id' } },
  ...account,
  ...knowledge,
  ...acting,
  ...chats,
  ...counters,
  shown('mine', 'POST', '/server/session/signup', { body: { email: 'grace@example.org', password: 'a long and secret sentence' } }),
];
