import { Type } from 'typebox';
import { group, list, named, oneOf, record, text, word } from './shapes.ts';

/** External services besides clients and providers. */
export const search = group('Web search.', {
  engine: oneOf(
    'Search engine for models whose provider has no web search of its own; searxng must have its JSON format enabled.',
    ['searxng', 'brave', 'tavily'],
    {
      default: 'searxng',
    },
  ),
  url: text('URL of the engine; empty: the public API of brave or tavily if apiKey is set, otherwise no web search.'),
  apiKey: text('API key of the engine.'),
});

export const rerank = group('Reranking of passages.', {
  url: text('URL of the reranking service; empty: no reranking.'),
  apiKey: text('API key of the service.'),
  model: text('Name of the reranking model.'),
});

export const retrieval = group('Search in datasets.', {
  vectorCacheBytes: Type.Integer({
    minimum: 1_048_576,
    maximum: 4_000_000_000, // of the memory that the vectors are in
    description: 'Memory per process for vectors of datasets, with the embedded database or a server that has no pgvector (bytes).',
    default: 268_435_456,
  }),
});

export const sources = group('What datasets may follow.', {
  folders: list(
    'Folders that datasets of administrators may follow, with those in them: absolute paths, the same on every machine.',
    word('Absolute path of a folder.'),
    { examples: [['/srv/handbook']] },
  ),
});

const approvalWords = ['first', 'always', 'never'] as const;

/** What an operator may say of each server. */
const mcpEntry = {
  tools: Type.Optional(Type.Array(word('Name of a tool.'), { description: 'The only tools that may be called; absent: all.' })),
  approval: Type.Optional(oneOf('As mcp.approval, for this server; the stricter of the two holds.', approvalWords)),
};

export const mcp = group('MCP servers.', {
  mode: oneOf('open: users may add their own servers; whitelist: users may only use the servers of the whitelist.', ['open', 'whitelist'], { default: 'open' }),
  approval: oneOf(
    'Calls of tools that users are asked for. first: the first call of each definition of a tool that may change things; always: every call; never: none.',
    approvalWords,
    { default: 'first' },
  ),
  whitelist: list(
    'Remote MCP servers.',
    record('A remote server.', {
      name: word('Name of the server.'),
      url: word('URL of the server. A private address needs its origin in outbound.allow, too.'),
      ...mcpEntry,
    }),
    {
      examples: [[{ name: 'everything', url: 'http://127.0.0.1:3001/mcp' }]],
    },
  ),
  stdio: list(
    'MCP servers that are started as local programs; users cannot add any.',
    record('A local server.', {
      name: word('Name of the server.'),
      command: word('Absolute path of the program; it is run without a shell.'),
      args: list('Arguments of the program.', Type.String()),
      env: named('Environment variables of the program; it inherits no others.', Type.String()),
      ...mcpEntry,
    }),
  ),
});

export const outbound = group('Outbound connections.', {
  allow: list('Exceptions, as scheme://host:port, to the rule that URLs chosen by users must not refer to private addresses.', word('scheme://host:port'), {
    examples: [['http://127.0.0.1:3001']],
  }),
  proxy: text('Proxy for providers and for URLs chosen by users; overridden by HTTPS_PROXY; empty: none.'),
  noProxy: text('Comma-separated hosts that bypass the proxy; overridden by NO_PROXY.'),
  caFile: text(
    'PEM file with certificate authorities to trust in addition to the default ones and those of NODE_EXTRA_CA_CERTS; a relative path is resolved against the folder of the settings file.',
  ),
});

export const alerts = group('Alerts for operators.', {
  url: text('Webhook URL that receives each alert as a JSON POST; empty: no alerts.'),
  secret: text('Secret that the messages are signed with.'),
});

export const blobs = group('Storage of files.', {
  s3: group('An S3-compatible bucket; empty: the data folder.', {
    endpoint: text('URL of the storage service.'),
    region: text('Region of the bucket.'),
    bucket: text('Name of the bucket.'),
    accessKeyId: text('Access key ID.'),
    secretAccessKey: text('Secret access key.'),
  }),
});

export const otel = group('OpenTelemetry.', { endpoint: text('URL of the OTLP endpoint; empty: no export.') });
