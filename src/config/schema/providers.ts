import { Type } from 'typebox';
import type { ProviderKind } from '#core/provider-kind';
import { list, named, oneOf, record, word } from './shapes.ts';

const region = Type.Union([
  word('A region by its name.'),
  record('A region that has an address of its own.', { name: word('The region.'), baseUrl: word('Its address.') }),
]);

const credentials = record('How to sign in: one of the members; absent: the application default credentials of the machine.', {
  serviceAccountFile: Type.Optional(word('The key file of a service account; a relative path starts at the folder of this file.')),
  accessToken: Type.Optional(word('An access token.')),
  apiKey: Type.Optional(word('An API key.')),
});

/** The settings of a provider besides its dialect and kind. Which of them go with which kind is said by its module. */
const members = {
  baseUrl: word('Its address, http or https, without the name of an operation; {region} in it is replaced by each region.'),
  apiKeys: Type.Optional(Type.Array(word('An API key.'), { minItems: 1, description: 'Keys, used in turn; absent: none is sent.' })),
  headers: named('Headers sent with every request, by name.', Type.String()),
  apiVersion: Type.Optional(word('The api-version of kind azure.')),
  project: Type.Optional(word('The project of kind vertex.')),
  publisher: word('The publisher of the models of kind vertex.', { default: 'google' }),
  credentials: Type.Optional(credentials),
  regions: list('Regions of kind vertex, tried in this order.', region),
  residency: named(
    'Strict lists of regions, by name: a model or a plan with `residency: <name>` never leaves the list.',
    Type.Array(word('A region.'), { minItems: 1 }),
  ),
  mediaUrls: Type.Optional(
    oneOf('Media that a request gives by address: passed on as it is, or fetched here and given to the provider as base64; absent: as its dialect needs it.', [
      'passed',
      'fetched',
    ]),
  ),
  order: oneOf('In which order regions are tried.', ['listed', 'fastest'], { default: 'listed' }),
};

/** A server of one's own, of whatever kind the first one is. */
const local = (dialect: string) => ({ dialect, baseUrl: 'http://127.0.0.1:8000/v1', headers: { 'x-team': 'search' } });

export const providers = (kinds: readonly ProviderKind[]) =>
  named(
    `Who answers, by a name of your choice; ${described(kinds)}.`,
    record('Somebody who answers.', {
      dialect: oneOf('The wire format it speaks.', namesOf(kinds.map(({ dialect }) => dialect))),
      kind: Type.Optional(
        oneOf('Where its addresses differ from the usual ones of the dialect.', namesOf(kinds.flatMap(({ kind }) => (kind === undefined ? [] : [kind])))),
      ),
      ...members,
    }),
    { examples: [{ ...Object.assign({}, ...kinds.map(({ examples }) => examples)), local: local(kinds[0]?.dialect ?? '') }] },
  );

/** Each name once. */
const namesOf = (names: readonly string[]) => [...new Set(names)] as [string, ...string[]];

/** `openai-chat is any OpenAI-compatible address, … gemini any that speaks as the Gemini API or, with kind vertex, Google Cloud` */
function described(kinds: readonly ProviderKind[]): string {
  return kinds
    .flatMap(({ dialect, kind, serves }) => (serves === undefined ? [] : [kind === undefined ? `, ${dialect} ${serves}` : ` or, with kind ${kind}, ${serves}`]))
    .join('')
    .replace(/^, (\S+)/, '$1 is');
}
