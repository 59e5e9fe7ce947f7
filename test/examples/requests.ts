/** A request for each operation of the document, in an order in which each finds what it needs. */
export interface Step {
  readonly operation: string;
  readonly method?: string;
  /** `{name}` is what an earlier answer was said to keep under the name. */
  readonly path: string;
  readonly body?: unknown;
  /** Members of the answer that later steps need, by name. */
  readonly keeps?: Readonly<Record<string, string>>;
}

const chat = '/server/chatcompat/v1';
const content = '/server/gencompat/v1beta/models';
const admin = '/server/admin';
const hello = [{ role: 'user', content: 'Say exactly: hello' }];
const contents = [{ role: 'user', parts: [{ text: 'Say exactly: hello' }] }];

export const steps: readonly Step[] = [
  { operation: 'chatcompat-post-server-chatcompat-v1-chat-completions', path: `${chat}/chat/completions`, body: { model: 'built-in', messages: hello } },
  {
    operation: 'chatcompat-post-server-chatcompat-v1-responses',
    path: `${chat}/responses`,
    body: { model: 'built-in', input: 'Say exactly: hello' },
    keeps: { response: 'id' },
  },
  { operation: 'chatcompat-get-server-chatcompat-v1-responses-id', path: `${chat}/responses/{response}` },
  { operation: 'chatcompat-get-server-chatcompat-v1-responses-id-input-items', path: `${chat}/responses/{response}/input_items` },
  { operation: 'chatcompat-delete-server-chatcompat-v1-responses-id', method: 'DELETE', path: `${chat}/responses/{response}` },
  { operation: '', path: `${chat}/responses`, body: { model: 'built-in', input: 'Say exactly: hello', background: true }, keeps: { run: 'id' } },
  { operation: 'chatcompat-post-server-chatcompat-v1-responses-id-cancel', method: 'POST', path: `${chat}/responses/{run}/cancel` },
  {
    operation: 'chatcompat-post-server-chatcompat-v1-conversations',
    path: `${chat}/conversations`,
    body: { items: [{ role: 'user', content: 'My name is Ada.' }] },
    keeps: { conversation: 'id' },
  },
  { operation: 'chatcompat-get-server-chatcompat-v1-conversations-id', path: `${chat}/conversations/{conversation}` },
  { operation: 'chatcompat-post-server-chatcompat-v1-conversations-id', path: `${chat}/conversations/{conversation}`, body: { metadata: { topic: 'names' } } },
  {
    operation: 'chatcompat-post-server-chatcompat-v1-conversations-id-items',
    path: `${chat}/conversations/{conversation}/items`,
    body: { items: [{ role: 'user', content: 'What is my name?' }] },
  },
  { operation: 'chatcompat-get-server-chatcompat-v1-conversations-id-items', path: `${chat}/conversations/{conversation}/items` },
  { operation: 'chatcompat-delete-server-chatcompat-v1-conversations-id', method: 'DELETE', path: `${chat}/conversations/{conversation}` },
  { operation: 'chatcompat-post-server-chatcompat-v1-completions', path: `${chat}/completions`, body: { model: 'built-in', prompt: 'Say exactly: hello' } },
  {
    operation: 'chatcompat-post-server-chatcompat-v1-embeddings',
    path: `${chat}/embeddings`,
    body: { model: 'built-in-embedding', input: ['hello', 'good day'] },
  },
  { operation: 'chatcompat-get-server-chatcompat-v1-models', path: `${chat}/models` },
  { operation: 'chatcompat-get-server-chatcompat-v1-models-id', path: `${chat}/models/built-in` },
  {
    operation: 'messages-post-server-messages-v1-messages',
    path: '/server/messages/v1/messages',
    body: { model: 'built-in', max_tokens: 100, messages: hello },
  },
  {
    operation: 'messages-post-server-messages-v1-messages-count-tokens',
    path: '/server/messages/v1/messages/count_tokens',
    body: { model: 'built-in', messages: hello },
  },
  { operation: 'messages-get-server-messages-v1-models', path: '/server/messages/v1/models' },
  { operation: 'messages-get-server-messages-v1-models-id', path: '/server/messages/v1/models/built-in' },
  { operation: 'gencompat-post-server-gencompat-v1beta-models-model-generateContent', path: `${content}/flash:generateContent`, body: { contents } },
  {
    operation: 'gencompat-post-server-gencompat-v1beta-models-model-streamGenerateContent',
    path: `${content}/flash:streamGenerateContent`,
    body: { contents },
  },
  { operation: 'gencompat-post-server-gencompat-v1beta-models-model-countTokens', path: `${content}/flash:countTokens`, body: { contents } },
  {
    operation: 'gencompat-post-server-gencompat-v1beta-models-model-embedContent',
    path: `${content}/built-in-embedding:embedContent`,
    body: { content: contents[0] },
  },
  {
    operation: 'gencompat-post-server-gencompat-v1beta-models-model-batchEmbedContents',
    path: `${content}/built-in-embedding:batchEmbedContents`,
    body: { requests: [{ model: 'models/built-in-embedding', content: contents[0] }] },
  },
  {
    operation: 'gencompat-post-server-gencompat-v1beta-models-model-predict',
    path: `${content}/built-in-embedding:predict`,
    body: { instances: [{ content: 'hello' }] },
  },
  { operation: 'gencompat-get-server-gencompat-v1beta-models', path: content },
  { operation: 'gencompat-get-server-gencompat-v1beta-models-id', path: `${content}/built-in` },
  { operation: 'admin-put-server-admin-plans-name', method: 'PUT', path: `${admin}/plans/team`, body: { monthlyTokens: 20_000_000, requestsPerMinute: 600 } },
  { operation: 'admin-get-server-admin-plans', path: `${admin}/plans` },
  { operation: 'admin-post-server-admin-users', path: `${admin}/users`, body: { email: 'ada@example.org', plan: 'team' }, keeps: { user: 'id' } },
  { operation: 'admin-get-server-admin-users', path: `${admin}/users` },
  { operation: 'admin-get-server-admin-users-id', path: `${admin}/users/{user}` },
  { operation: 'admin-patch-server-admin-users-id', method: 'PATCH', path: `${admin}/users/{user}`, body: { requestsPerMinute: 60 } },
  {
    operation: 'admin-post-server-admin-users-id-keys',
    path: `${admin}/users/{user}/keys`,
    body: { name: 'laptop', scopes: ['passthrough'] },
    keeps: { key: 'id' },
  },
  { operation: 'admin-get-server-admin-users-id-keys', path: `${admin}/users/{user}/keys` },
  { operation: 'admin-post-server-admin-users-id-keys-key-rotate', path: `${admin}/users/{user}/keys/{key}/rotate`, body: { graceSeconds: 3600 } },
  { operation: 'admin-delete-server-admin-users-id-keys-key', method: 'DELETE', path: `${admin}/users/{user}/keys/{key}` },
  { operation: 'admin-post-server-admin-teams', path: `${admin}/teams`, body: { name: 'research', plan: 'team', members: ['{user}'] }, keeps: { team: 'id' } },
  { operation: 'admin-get-server-admin-teams', path: `${admin}/teams` },
  { operation: 'admin-get-server-admin-teams-id', path: `${admin}/teams/{team}` },
  { operation: 'admin-patch-server-admin-teams-id', method: 'PATCH', path: `${admin}/teams/{team}`, body: { name: 'research and teaching' } },
  { operation: 'admin-delete-server-admin-teams-id', method: 'DELETE', path: `${admin}/teams/{team}` },
  { operation: 'admin-delete-server-admin-users-id', method: 'DELETE', path: `${admin}/users/{user}` },
  { operation: 'admin-get-server-admin-audit', path: `${admin}/audit?limit=1` },
  { operation: 'admin-get-server-admin-lessons', path: `${admin}/lessons` },
  { operation: 'admin-delete-server-admin-lessons', method: 'DELETE', path: `${admin}/lessons` },
  { operation: 'admin-post-server-admin-regions-reset', method: 'POST', path: `${admin}/regions/reset` },
  { operation: 'watch-get-healthz', path: '/healthz' },
  { operation: 'watch-get-readyz', path: '/readyz' },
];

/** Operations without an example, and why. */
export const without: Readonly<Record<string, string>> = {
  'chatcompat-post-server-chatcompat-v1-moderations': 'no built-in model answers it',
  'chatcompat-post-server-chatcompat-v1-audio-speech': 'no built-in model answers it',
  'chatcompat-post-server-chatcompat-v1-audio-transcriptions': 'no built-in model answers it',
  'chatcompat-post-server-chatcompat-v1-images-generations': 'no built-in model answers it',
  'native-post-server-file': 'it takes a file of a form',
  'admin-get-server-admin-usage': 'what it answers grows with time',
  'admin-get-server-admin-logs': 'what it answers grows with time',
  'admin-get-server-admin-logs-requestId': 'what it answers grows with time',
  'admin-get-server-admin-holders': 'what it answers is of one machine',
  'admin-post-server-admin-holders-id-write-off': 'needs a machine that died',
  'admin-delete-server-admin-lessons-id': 'needs a provider that refused',
  'admin-get-server-admin-regions': 'needs a provider with regions',
  'admin-get-server-admin-doctor': 'what it answers is of one machine',
  'watch-get-metrics': 'its answer is no JSON',
  'watch-get-openapi-json': 'it is the document itself',
  'watch-get-docs': 'its answer is no JSON',
  'watch-get-slash': 'its answer names the address of the server',
  'watch-get-favicon-ico': 'it has no body',
  'watch-get-docs-css': 'its answer is no JSON',
};
