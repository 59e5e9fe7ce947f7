import { entities } from '#kit/patterns/entities';
import { Type } from 'typebox';
import { count, group, list, named, oneOf, record, text, word, yes } from './shapes.ts';

const any = 'empty: all';

const check = record('A check of what is said.', {
  name: word('Its name: refusals, flags and the log say it, and it stands in the place of what a regex masks.'),
  when: list('Before the call, after it, or both.', oneOf('', ['before', 'after']), { default: ['before'] }),
  kind: oneOf('How it looks.', ['regex', 'pii', 'moderation', 'http']),
  pattern: Type.Optional(word("The regular expression of kind regex: JavaScript's, perhaps with (?i), (?s) or (?m) before it.")),
  entities: Type.Optional(Type.Array(word(`A kind of personal data: ${entities.join(', ')}.`), { minItems: 1, description: 'What kind pii looks for.' })),
  model: Type.Optional(
    word('The model of kind moderation: one of `models` whose kind is moderation or chat. It is asked, and booked, as a step of the same request.'),
  ),
  url: Type.Optional(word('The address that kind http asks: a POST of {when, text, model, user} for each text, answered by {action?, text?}.')),
  action: oneOf(
    'What happens with what was found: deny refuses the request or ends the answer, mask puts a placeholder in its place, flag names the check in x-dragoman-flags and in the log.',
    ['deny', 'mask', 'flag'],
  ),
  onFailure: oneOf('What happens when the check itself cannot be made.', ['refuse', 'allow'], { default: 'refuse' }),
  models: list(`Model names it holds for; ${any}.`, word('A model name.')),
  keys: list(`Names of API keys it holds for; ${any}.`, word('A key name.')),
  users: list(`E-mail addresses it holds for; ${any}.`, word('An e-mail address.')),
  stream: oneOf('A streamed answer is held back and looked at sentence by sentence, or as a whole.', ['sentence', 'whole'], { default: 'sentence' }),
});

/** What holds for calls, answers and what is kept of them. */
export const responses = group('Stored answers of the responses interface.', {
  store: yes('Are answers stored unless a request says otherwise?', true),
  retentionDays: count('Kept for so long', 'days', 1, { default: 30 }),
  maxRuns: count('Responses of a user that are worked on in the background, or wait for it; one more is refused with 429', 'responses', 1, { default: 1000 }),
  maxBytes: count('What is kept of the responses and conversations of a user; beyond it a request that is to be stored is refused with 429', 'bytes', 1, {
    default: 1_073_741_824,
  }),
});

export const bodies = oneOf(
  'What is kept of prompts: own (the first 2,000 characters each of prompt and answer, sealed, shown only to the user), all (also to administrators) or none.',
  ['own', 'all', 'none'],
  { default: 'own' },
);

export const retention = group('How long the books are kept.', {
  usageMonths: count('Usage rows, the present month counted', 'months', 1, { default: 13 }),
  bodiesDays: count('Prompts', 'days', 1, { default: 30 }),
});

export const cache = named(
  'Answers of chat models kept for equal requests of the same user, by model name or "*" for all others; in the memory of each process, 64 MiB at most. A request says otherwise with the header x-dragoman-cache: seconds, or no-store.',
  record('For this model.', {
    ttlSeconds: Type.Number({ exclusiveMinimum: 0, maximum: 2_147_483, description: 'Kept for so long (seconds).' }),
  }),
  { examples: [{ 'gpt-5.2': { ttlSeconds: 600 } }] },
);

export const guard = group('What may be said.', {
  checks: list('Checks of what is asked and answered, in order: each sees what the one before it left.', check, {
    examples: [[{ name: 'keys', when: ['before'], kind: 'regex', pattern: 'AKIA[0-9A-Z]{16}', action: 'deny' }]],
  }),
});

export const auth = group('Who may come in.', {
  keyInQuery: yes('Is ?key= taken as a credential?', false),
  oidc: group('Sign-in through an OpenID provider; empty: none.', {
    issuer: text('Its address.'),
    clientId: text('Our name there.'),
    clientSecret: text('Our secret there.'),
  }),
});

export const cors = group('Browsers.', {
  origins: list('Pages that may call from a browser, as scheme://host:port, or "*" for all; never with cookies.', word('scheme://host:port')),
});

export const compat = group('Habits of older servers that some clients need.', {
  nativeErrors: oneOf('http: errors have their real status; envelope: 200 with the status in the body.', ['http', 'envelope'], { default: 'http' }),
  vendorNames: yes('Are the model names of other servers understood?', true),
  leadingNewlines: yes('Does an answer start with two newlines?', false),
});
