import { Type } from 'typebox';
import { count, group, later, list, named, oneOf, record, text, word, yes } from './shapes.ts';

const any = 'empty: all';

const check = record('A check of what is said.', {
  name: word('Its name.'),
  when: list('Before the call, after it, or both.', oneOf('', ['before', 'after']), { default: ['before'] }),
  kind: oneOf('How it looks.', ['regex', 'pii', 'moderation', 'http']),
  pattern: Type.Optional(word('The regular expression of kind regex.')),
  entities: Type.Optional(Type.Array(word('A kind of entity.'), { minItems: 1, description: 'What kind pii looks for.' })),
  model: Type.Optional(word('The model of kind moderation.')),
  url: Type.Optional(word('The address that kind http asks.')),
  action: oneOf('What happens then.', ['deny', 'mask', 'flag']),
  models: list(`Model names it holds for; ${any}.`, word('A model name.')),
  keys: list(`Names of API keys it holds for; ${any}.`, word('A key name.')),
  users: list(`E-mail addresses it holds for; ${any}.`, word('An e-mail address.')),
  stream: oneOf('A streamed answer is looked at sentence by sentence, or held back as a whole.', ['sentence', 'whole'], { default: 'sentence' }),
});

/** What holds for calls, answers and what is kept of them. */
export const responses = group('Stored answers of the responses interface.', {
  store: yes('Are answers stored unless a request says otherwise?', true),
  retentionDays: count('Kept for so long', 'days', 1, { default: 30 }),
});

export const bodies = later(
  'the prompt log',
  oneOf(
    'What is kept of prompts: own (the first 2,000 characters each of prompt and answer, sealed, shown only to the user), all (also to administrators) or none.',
    ['own', 'all', 'none'],
    { default: 'own' },
  ),
);

export const retention = group('How long the books are kept.', {
  usageMonths: count('Usage rows, the present month counted', 'months', 1, { default: 13 }),
  bodiesDays: later('the prompt log', count('Prompts', 'days', 1, { default: 30 })),
});

export const cache = later(
  'the cache',
  named(
    'Answers kept for equal requests, by model name or "*".',
    record('For this model.', {
      ttlSeconds: Type.Number({ exclusiveMinimum: 0, maximum: 2_147_483, description: 'Kept for so long (seconds).' }),
    }),
    { examples: [{ 'gpt-5.2': { ttlSeconds: 600 } }] },
  ),
);

export const guard = group('What may be said.', {
  checks: later(
    'guards',
    list('Checks, in order.', check, {
      examples: [[{ name: 'keys', when: ['before'], kind: 'regex', pattern: 'AKIA[0-9A-Z]{16}', action: 'deny' }]],
    }),
  ),
});

export const auth = group('Who may come in.', {
  keyInQuery: yes('Is ?key= taken as a credential?', false),
  oidc: later(
    'the console',
    group('Sign-in through an OpenID provider; empty: none.', {
      issuer: text('Its address.'),
      clientId: text('Our name there.'),
      clientSecret: text('Our secret there.'),
    }),
  ),
});

export const cors = group('Browsers.', {
  origins: list('Pages that may call from a browser, as scheme://host:port, or "*" for all; never with cookies.', word('scheme://host:port')),
});

export const compat = group('Habits of older servers that some clients need.', {
  nativeErrors: later(
    'the native interface',
    oneOf('http: errors have their real status; envelope: 200 with the status in the body.', ['http', 'envelope'], {
      default: 'http',
    }),
  ),
  vendorNames: later('the native interface', yes('Are the model names of other servers understood?', true)),
  leadingNewlines: later('the native interface', yes('Does an answer start with two newlines?', false)),
});
