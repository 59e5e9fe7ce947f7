import { Type } from 'typebox';
import { group, list, named, oneOf, record, text, word } from './shapes.ts';

/** What Dragoman talks with besides clients and providers. */
export const search = group('Where the web is searched.', {
  engine: oneOf(
    'The engine that is asked for models whose provider does not search by itself; searxng needs the JSON format switched on.',
    ['searxng', 'brave', 'tavily'],
    {
      default: 'searxng',
    },
  ),
  url: text('Its address; empty: the usual one of brave and tavily where there is a key, else no web search.'),
  apiKey: text('Its API key.'),
});

export const rerank = group('Who sorts passages again.', {
  url: text('Its address; empty: nobody.'),
  apiKey: text('Its API key.'),
  model: text('The model.'),
});

export const mcp = group('MCP servers.', {
  mode: oneOf('May users add servers of their own (open), or only use those of the whitelist?', ['open', 'whitelist'], { default: 'open' }),
  whitelist: list('Servers by address.', record('A server.', { name: word('Its name.'), url: word('Its address.') }), {
    examples: [[{ name: 'everything', url: 'http://127.0.0.1:3001/mcp' }]],
  }),
  stdio: list(
    'Servers that are started as programs; only here, never by a user.',
    record('A program.', {
      name: word('Its name.'),
      command: word('The program, as an absolute path; no shell reads it.'),
      args: list('Its arguments.', Type.String()),
      env: named('Its whole environment.', Type.String()),
    }),
  ),
});

export const outbound = group('Connections to the outside.', {
  allow: list('Exceptions, as scheme://host:port, to the rule that addresses chosen by users may not be private.', word('scheme://host:port'), {
    examples: [['http://127.0.0.1:3001']],
  }),
  proxy: text('The proxy for providers and for addresses chosen by users; HTTPS_PROXY comes first; empty: none.'),
  noProxy: text('Hosts that are reached without the proxy, with commas between them; NO_PROXY comes first.'),
  caFile: text(
    'Certificate authorities to trust besides the usual ones and those of NODE_EXTRA_CA_CERTS, as a PEM file; a relative path starts at the folder of this file.',
  ),
});

export const alerts = group('Who is told when something needs an operator.', {
  url: text('Address that a JSON message is posted to; empty: nobody.'),
  secret: text('Signs the messages.'),
});

export const blobs = group('Where files are kept.', {
  s3: group('An S3-compatible bucket; empty: the data folder.', {
    endpoint: text('Address of the store.'),
    region: text('Its region.'),
    bucket: text('The bucket.'),
    accessKeyId: text('Name of the key.'),
    secretAccessKey: text('The key.'),
  }),
});

export const otel = group('OpenTelemetry.', { endpoint: text('OTLP address; empty: off.') });
