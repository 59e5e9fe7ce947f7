import { entities } from '#kit/patterns/entities';
import { Type } from 'typebox';
import { age, count, group, list, named, oneOf, record, text, word, yes } from './shapes.ts';

const any = 'empty: all';

const check = record('A check of prompts or answers.', {
  name: word('Name of the check, used in refusals, flags and the log, and as the placeholder for text that a regex masks.'),
  when: list('When the check runs: before the call (on the prompt), after it (on the answer), or both.', oneOf('', ['before', 'after']), {
    default: ['before'],
  }),
  kind: oneOf('Kind of the check.', ['regex', 'pii', 'moderation', 'http']),
  pattern: Type.Optional(word('Regular expression, for kind regex, in JavaScript syntax; it may start with (?i), (?s) or (?m).')),
  entities: Type.Optional(
    Type.Array(word(`A kind of personal data: ${entities.join(', ')}.`), {
      minItems: 1,
      description: `Kinds of personal data to find, for kind pii: ${entities.join(', ')}.`,
    }),
  ),
  model: Type.Optional(
    word('Model for kind moderation: one of `models` whose kind is moderation or chat. Each of its calls is logged and charged as a step of the same request.'),
  ),
  url: Type.Optional(word('Webhook URL, for kind http: receives a POST of {when, text, model, user} for each text and answers {action?, text?}.')),
  action: oneOf(
    'Action on a match. deny: refuse the request or end the answer; mask: replace the match with a placeholder; flag: name the check in x-dragoman-flags and in the log.',
    ['deny', 'mask', 'flag'],
  ),
  onFailure: oneOf('Action if the check itself fails.', ['refuse', 'allow'], { default: 'refuse' }),
  models: list(`Names of the models that the check applies to; ${any}.`, word('A model name.')),
  keys: list(`Names of the API keys that the check applies to; ${any}.`, word('Name of an API key.')),
  users: list(`E-mail addresses of the users that the check applies to; ${any}.`, word('An e-mail address.')),
  stream: oneOf('Unit in which a streamed answer is held back and checked: sentence by sentence, or the whole answer.', ['sentence', 'whole'], {
    default: 'sentence',
  }),
});

export const responses = group('Storage and background runs of the Responses API.', {
  store: yes('Whether responses are stored if the request does not specify `store`.', true),
  retentionDays: age('How long stored responses are kept', 'days', 30),
  maxRuns: count('Maximum number of background responses per user, running or queued; further ones are refused with 429', 'responses', 1, { default: 1000 }),
  maxBytes: count('Storage per user for responses and conversations; beyond it, requests to be stored are refused with 429', 'bytes', 1, {
    default: 1_073_741_824,
  }),
});

export const bodies = oneOf(
  'Storage of prompts and answers. own: the first 2,000 characters of each, encrypted and shown only to the user; all: shown to administrators too; none: nothing is stored.',
  ['own', 'all', 'none'],
  { default: 'own' },
);

export const retention = group('How long records are kept.', {
  usageMonths: age('Usage records, including the current month', 'months', 13),
  bodiesDays: age('Stored prompts and answers', 'days', 30),
});

export const cache = named(
  'Response cache for identical requests of the same user, by name of the chat model, or "*" for all others; in the memory of each process, 64 MiB at most. A request overrides it with the header x-dragoman-cache: seconds or no-store.',
  record('Cache of a model.', {
    ttlSeconds: Type.Number({ exclusiveMinimum: 0, maximum: 2_147_483, description: 'How long an answer is cached (seconds).' }),
  }),
  { examples: [{ 'gpt-5.2': { ttlSeconds: 600 } }] },
);

export const guard = group('Content policy.', {
  checks: list('Checks of prompts and answers, in order: each check sees the text that the previous one returned.', check, {
    examples: [[{ name: 'keys', when: ['before'], kind: 'regex', pattern: 'AKIA[0-9A-Z]{16}', action: 'deny' }]],
  }),
});

export const auth = group('Authentication.', {
  keyInQuery: yes('Whether ?key= is accepted as a credential.', false),
  oidc: group('Sign-in through an OpenID Connect provider; empty: off.', {
    issuer: text('URL of the issuer.'),
    clientId: text('Client ID at the issuer.'),
    clientSecret: text('Client secret at the issuer.'),
    scopes: list('Scopes that are requested from the issuer.', word('A scope.'), { default: ['openid', 'email', 'profile'] }),
    groupsClaim: text('Claim with the groups of a user; empty: the role and the teams of users do not follow their groups.'),
    adminGroups: list('Groups whose members are administrators.', word('A group.')),
    teams: named('Teams by group: its members are members of that team.', word('Name of a team.')),
    plan: text('Plan of users who sign in for the first time; empty: `newUsers.plan`.'),
  }),
});

export const cors = group('Cross-origin requests from browsers (CORS).', {
  origins: list('Allowed origins, as scheme://host:port, or "*" for all; cookies are never accepted.', word('scheme://host:port')),
});

export const compat = group('Compatibility with older servers that some clients rely on.', {
  nativeErrors: oneOf(
    'Errors of the native interface. http: they have their real HTTP status; envelope: HTTP 200 with the status in the body.',
    ['http', 'envelope'],
    { default: 'http' },
  ),
  vendorNames: yes(
    'Whether fields of the native interface also have the names that carry a vendor name, beside the neutral ones; false: the neutral ones alone.',
    true,
  ),
  leadingNewlines: yes('Whether an answer starts with two newlines.', false),
});
