import { Type } from 'typebox';
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

const provider = record('Somebody who answers.', {
  dialect: oneOf('The wire format it speaks.', ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini']),
  kind: Type.Optional(oneOf('Where its addresses differ from the usual ones of the dialect.', ['azure', 'vertex'])),
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
});

export const providers = named(
  'Who answers, by a name of your choice; openai-chat is any OpenAI-compatible address, openai-responses any that has the responses interface, anthropic-messages any that speaks as Anthropic does, gemini any that speaks as the Gemini API or, with kind vertex, Google Cloud.',
  provider,
  {
    examples: [
      {
        openai: { dialect: 'openai-chat', baseUrl: 'https://api.openai.com/v1', apiKeys: ['${OPENAI_API_KEY}'] },
        responses: { dialect: 'openai-responses', baseUrl: 'https://api.openai.com/v1', apiKeys: ['${OPENAI_API_KEY}'] },
        azure: {
          dialect: 'openai-chat',
          kind: 'azure',
          baseUrl: 'https://my.openai.azure.com',
          apiVersion: '2025-04-01-preview',
          apiKeys: ['${AZURE_KEY}'],
        },
        claude: { dialect: 'anthropic-messages', baseUrl: 'https://api.anthropic.com', apiKeys: ['${ANTHROPIC_API_KEY}'] },
        gemini: { dialect: 'gemini', baseUrl: 'https://generativelanguage.googleapis.com/v1beta', apiKeys: ['${GEMINI_API_KEY}'] },
        platform: {
          dialect: 'gemini',
          kind: 'vertex',
          project: 'my-project',
          publisher: 'google',
          baseUrl: 'https://{region}-aiplatform.googleapis.com/v1',
          credentials: { serviceAccountFile: 'key.json' },
          regions: ['us-central1', 'us-east1', 'us-east4', 'us-east5', 'us-south1', 'us-west1', 'us-west4'],
          residency: { us: ['us-central1', 'us-east1'] },
          order: 'listed',
        },
        local: { dialect: 'openai-chat', baseUrl: 'http://127.0.0.1:8000/v1', headers: { 'x-team': 'search' } },
      },
    ],
  },
);
