import { Type } from 'typebox';
import type { ProviderKind } from '#core/provider-kind';
import { list, named, oneOf, record, word } from './shapes.ts';

const region = Type.Union([
  word('Name of a region.'),
  record('A region with its own base URL.', { name: word('Name of the region.'), baseUrl: word('Base URL of the region.') }),
]);

const credentials = record('Credentials, exactly one of the members; absent: the application default credentials of the machine.', {
  serviceAccountFile: Type.Optional(word('Key file of a service account; a relative path is resolved against the folder of the settings file.')),
  accessToken: Type.Optional(word('An access token.')),
  apiKey: Type.Optional(word('An API key.')),
});

/** The settings of a provider besides its dialect and kind. The module of each kind declares which of them it takes. */
const members = {
  baseUrl: word(
    'Base URL (http or https) without the path of an operation, at OpenAI-compatible servers possibly with ?api-version=…; {region} in it is replaced by the name of each region.',
  ),
  apiKeys: Type.Optional(
    Type.Array(word('An API key.'), {
      minItems: 1,
      description: 'API keys, used in rotation; one that is refused or rate-limited is passed over for a while. Absent: no key is sent.',
    }),
  ),
  headers: named('Headers sent with every request, by name.', Type.String()),
  apiVersion: Type.Optional(word('API version, for kind azure.')),
  project: Type.Optional(word('Project ID, for kind vertex.')),
  publisher: word('Publisher of the models, for kind vertex.', { default: 'google' }),
  credentials: Type.Optional(credentials),
  regions: list('Regions, for kind vertex, in the order in which they are tried.', region),
  residency: named(
    'Strict region lists, by name: a model or a plan with `residency: NAME` uses no region outside the list.',
    Type.Array(word('Name of a region.'), { minItems: 1 }),
  ),
  mediaUrls: Type.Optional(
    oneOf(
      'Handling of media URLs in a request. passed: forwarded unchanged; fetched: downloaded here and sent to the provider as base64; absent: whatever the dialect requires.',
      ['passed', 'fetched'],
    ),
  ),
  caching: Type.Optional(
    oneOf(
      'Prompt caching at providers that cache only up to the cache breakpoints (cache_control) of a request. auto: a request without any is cached as a whole; absent: as the client sets them.',
      ['auto'],
    ),
  ),
  order: oneOf('Order in which regions are tried.', ['listed', 'fastest'], { default: 'listed' }),
};

/** A self-hosted server that speaks the first dialect. */
const local = (dialect: string) => ({ dialect, baseUrl: 'http://127.0.0.1:8000/v1', headers: { 'x-team': 'search' } });

export const providers = (kinds: readonly ProviderKind[]) =>
  named(
    `Providers, by a name of your choice. Dialects: ${described(kinds)}.`,
    record('A provider of models.', {
      dialect: oneOf('Wire format of the provider.', namesOf(kinds.map(({ dialect }) => dialect))),
      kind: Type.Optional(oneOf('Variant of the dialect with URLs of its own.', namesOf(kinds.flatMap(({ kind }) => (kind === undefined ? [] : [kind]))))),
      ...members,
    }),
    { examples: [{ ...Object.assign({}, ...kinds.map(({ examples }) => examples)), local: local(kinds[0]?.dialect ?? '') }] },
  );

/** Each name once. */
const namesOf = (names: readonly string[]) => [...new Set(names)] as [string, ...string[]];

/** `openai-chat is any server of the OpenAI Chat Completions API, … gemini any server of the Gemini API or, with kind vertex, Vertex AI on Google Cloud` */
function described(kinds: readonly ProviderKind[]): string {
  return kinds
    .flatMap(({ dialect, kind, serves }) => (serves === undefined ? [] : [kind === undefined ? `, ${dialect} ${serves}` : ` or, with kind ${kind}, ${serves}`]))
    .join('')
    .replace(/^, (\S+)/, '$1 is');
}
