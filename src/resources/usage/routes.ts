import { Type } from 'typebox';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { instantOf } from '#kit/async/instant';
import { Fault } from '#core/fault';
import type { LogDetail, Logs } from './logs.ts';
import { groups, isGroup, type Group, type Sums } from './sums.ts';

/** The admin API of usage and of the request log. */
export type UsageReading = Sums & Logs;

const time = (description: string) => Type.Optional(Type.String({ maxLength: 40, description }));

const UsageQuery = Type.Object(
  {
    from: time('ISO 8601; absent: the first of this month, UTC.'),
    to: time('ISO 8601, not included; absent: the first of the next month, UTC.'),
    groupBy: Type.Optional(Type.String({ maxLength: 200, description: `Words out of ${groups.join(', ')} and tag:NAME, with commas between them.` })),
  },
  { additionalProperties: false },
);

const sums = {
  requests: Type.Integer(),
  inputTokens: Type.Integer(),
  outputTokens: Type.Integer(),
  planTokens: Type.Integer(),
  costUsd: Type.Number({ description: 'US dollars.' }),
  errors: Type.Integer({ description: 'Requests that were refused or failed, except those that the client abandoned or cancelled.' }),
};

const UsageItem = Type.Object(
  {
    model: Type.Optional(Type.String()),
    user: Type.Optional(Type.Integer()),
    key: Type.Optional(Type.Integer()),
    app: Type.Optional(Type.String()),
    face: Type.Optional(Type.String()),
    region: Type.Optional(Type.String()),
    day: Type.Optional(Type.String({ description: '2026-11-21, UTC.' })),
    ...sums,
  },
  { description: 'A dimension `tag:NAME` is a member of that name: the value of the tag NAME, empty for requests without it.' },
);

const LogsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'Page size; default 50.' })),
    cursor: Type.Optional(Type.String({ maxLength: 1000, description: 'nextCursor of the previous page.' })),
    userId: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Model name as the client sent it.' })),
    status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
  },
  { additionalProperties: false },
);

const numberOrNull = Type.Union([Type.Number(), Type.Null()]);

const logItem = {
  requestId: Type.String(),
  step: Type.Integer(),
  at: Type.String({ description: 'Time of admission.' }),
  userId: Type.Integer(),
  keyId: Type.Integer(),
  app: Type.String(),
  face: Type.String(),
  tags: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Tags that the caller sent as x-dragoman-tags.' })),
  model: Type.String({ description: 'Model name as the client sent it.' }),
  servedModel: Type.String({ description: 'Model that answered.' }),
  provider: Type.String(),
  region: Type.String(),
  attempts: Type.Integer(),
  status: Type.Integer(),
  end: Type.String(),
  inputTokens: Type.Integer(),
  outputTokens: Type.Integer(),
  cachedTokens: Type.Integer({ description: 'Prompt tokens that the provider read from its cache.' }),
  cacheWriteTokens: Type.Integer({ description: 'Prompt tokens that the provider wrote to its cache for a few minutes.' }),
  cacheWrite1hTokens: Type.Integer({ description: 'Prompt tokens that the provider wrote to its cache for one hour.' }),
  thoughtTokens: Type.Integer({ description: 'Output tokens of the reasoning.' }),
  provenance: Type.Enum(['provider', 'estimated', 'partial', 'cached']),
  planTokens: Type.Integer(),
  costUsd: numberOrNull,
  queueMs: Type.Number(),
  firstTokenMs: numberOrNull,
  totalMs: Type.Number(),
};

const Detail = Type.Object({
  ...logItem,
  tries: Type.Array(
    Type.Object({
      provider: Type.String(),
      region: Type.Optional(Type.String()),
      model: Type.String(),
      milliseconds: Type.Optional(Type.Number()),
      fault: Type.Optional(Type.String()),
      said: Type.Optional(Type.String({ description: 'If the provider refused the request: the first sentence of its message, masked.' })),
    }),
    { description: 'The attempts, in order.' },
  ),
});

const common = { method: 'GET', scope: 'admin', owner: 'admin' } as const;

/** Routes of usage sums and of the request log, for administrators. @param timeNow milliseconds since 1970, for the current month */
export function usageRoutes(reading: UsageReading, timeNow: () => Promise<number>): readonly NounRoute[] {
  return [
    nounRoute({
      ...common,
      path: '/server/admin/usage',
      summary: 'What was used in a time, in sums.',
      query: UsageQuery,
      output: Type.Object({ items: Type.Array(UsageItem) }),
      async answer({ query: { from, to, groupBy } }) {
        const now = new Date(from === undefined || to === undefined ? await timeNow() : 0);
        const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
        const begin = from === undefined ? Date.UTC(year, month) : instant(from, 'from');
        const end = to === undefined ? Date.UTC(year, month + 1) : instant(to, 'to');
        if (end < begin) throw new Fault('invalid', 'to must not be before from.', { field: 'to' });
        return { items: await reading.usage({ from: begin, to: end, groupBy: groupsIn(groupBy ?? '') }) };
      },
    }),
    nounRoute({
      ...common,
      path: '/server/admin/logs',
      summary: 'The log of requests, newest first.',
      query: LogsQuery,
      output: Type.Object({ items: Type.Array(Type.Object(logItem)), nextCursor: Type.Union([Type.String(), Type.Null()]) }),
      answer({ query }) {
        return reading.logs({ ...query, limit: query.limit ?? 50 });
      },
    }),
    nounRoute({
      ...common,
      path: '/server/admin/logs/:requestId',
      summary: 'One request with each attempt; the further steps of one that took several stand in `steps`.',
      output: Type.Object({ ...Detail.properties, steps: Type.Optional(Type.Array(Detail)) }),
      async answer({ params: { requestId = '' } }) {
        if (!/^[\w-]{1,100}$/.test(requestId)) throw unknownThing('request');
        const [first, ...steps] = await reading.log(requestId);
        if (!first) throw unknownThing('request');
        return { ...detail(first), ...(steps.length > 0 ? { steps: steps.map(detail) } : {}) };
      },
    }),
  ];
}

const detail = (row: LogDetail) => ({ ...row, attempts: row.attempts.length, tries: row.attempts });

function instant(text: string, field: string): number {
  const found = instantOf(text);
  if (found === undefined) throw new Fault('invalid', `${field} must be a time in ISO 8601 such as 2026-11-01 or 2026-11-01T12:00:00Z.`, { field });
  return found;
}

function groupsIn(text: string): readonly Group[] {
  const words = text.split(',').map((word) => word.trim());
  const given = words.length === 1 && words[0] === '' ? [] : words;
  return [...new Set(given)].map((word) => {
    if (!isGroup(word))
      throw new Fault('invalid', `groupBy must be words out of ${groups.join(', ')} and tag:NAME, with commas between them.`, { field: 'groupBy' });
    return word;
  });
}
