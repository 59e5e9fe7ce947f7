import { Type } from 'typebox';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed, nullable, optionalOrNull } from '#http/schemas';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';
import { bookedFaces, ends } from '#core/usage-row';
import { instantIn } from '../instant-field.ts';
import { ownerOf, ownerQuery } from '../owner.ts';
import { pageSchema } from '../pagination.ts';
import type { UsageFilter } from './filters.ts';
import type { LogDetail, LoggedRow, Logs } from './logs.ts';
import { inPages, itemsOf, report } from './reports.ts';
import { groups, isGroup, type Group } from './groups.ts';
import { unknownZone, type Sums } from './sums.ts';
import { monthIn, timeZoneOf } from './time-zone.ts';
import { invalid } from '#core/fault';

/** What is read of usage and of the request log. */
export type UsageReading = Sums & Logs;

const time = (description: string) => Type.Optional(Type.String({ maxLength: 40, description }));
const word = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 200, description }));
const id = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description }));

const filters = {
  keyId: id('Id of an API key.'),
  team: id('Id of a team that it was charged to.'),
  model: word('Model name as the client sent it.'),
  app: word('Application, as the client named it.'),
  face: Type.Optional(Type.Enum([...bookedFaces], { description: 'Interface.' })),
  provider: word('Provider that answered.'),
  region: word('Region that answered.'),
  status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
  end: Type.Optional(Type.Enum([...ends], { description: 'How the call ended.' })),
  tag: Type.Optional(Type.String({ maxLength: 300, description: 'NAME:VALUE of a tag that the caller sent as x-dragoman-tags.' })),
  format: Type.Optional(Type.Enum(['csv', 'jsonl'], { description: 'The whole list as a file; formulas are escaped.' })),
};

const usageQuery = {
  from: time('ISO 8601; absent: the first of this month in `tz`.'),
  to: time('ISO 8601, not included; absent: the first of the next month in `tz`.'),
  groupBy: Type.Optional(Type.String({ maxLength: 200, description: `Words out of ${groups.join(', ')} and tag:NAME, with commas between them.` })),
  tz: Type.Optional(Type.String({ maxLength: 64, description: 'IANA name of the time zone in which days and hours are cut; default UTC.' })),
  ...filters,
};

const milliseconds = (description: string) => nullable(Type.Number(), { description });

const sums = {
  requests: Type.Integer({
    description:
      'Calls of models. A request may take several, such as checks, repairs and rounds of a search: each is counted, and has its own row in the log.',
  }),
  inputTokens: Type.Integer(),
  cachedTokens: Type.Integer({ description: 'Prompt tokens that providers read from their caches.' }),
  outputTokens: Type.Integer(),
  planTokens: Type.Integer(),
  costUsd: nullable(Type.Number(), { description: 'US dollars, of the calls whose price is known; null: of none.' }),
  unpriced: Type.Integer({ description: 'Calls whose price is not known.' }),
  errors: Type.Integer({ description: 'Calls that were refused or failed, except those that the client abandoned or cancelled.' }),
  firstTokenP50Ms: milliseconds('Median time to the first token, to five per cent.'),
  firstTokenP95Ms: milliseconds('95th percentile of the time to the first token.'),
  totalP50Ms: milliseconds('Median duration of a call.'),
  totalP95Ms: milliseconds('95th percentile of the duration of a call.'),
};

const UsageItem = Type.Object(
  {
    model: Type.Optional(Type.String()),
    user: Type.Optional(Type.Integer()),
    key: Type.Optional(Type.Integer()),
    app: Type.Optional(Type.String()),
    face: Type.Optional(Type.String()),
    region: Type.Optional(Type.String()),
    day: Type.Optional(Type.String({ description: '2026-11-21, in `tz`.' })),
    hour: Type.Optional(Type.String({ description: '2026-11-21T14:00, in `tz`.' })),
    provider: Type.Optional(Type.String()),
    team: optionalOrNull(Type.Integer(), { description: 'A row is under each team that it was charged to; null: under none.' }),
    balance: Type.Optional(Type.String()),
    ...sums,
  },
  { description: 'A dimension `tag:NAME` is a member of that name: the value of the tag NAME, empty for requests without it.' },
);

const logsQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'Page size; default 50.' })),
  cursor: Type.Optional(Type.String({ maxLength: 1000, description: 'nextCursor of the previous page.' })),
  from: time('ISO 8601.'),
  to: time('ISO 8601, not included.'),
  ...filters,
};

const userId = { userId: id('Id of a user.') };

const numberOrNull = nullable(Type.Number());

export const logItem = {
  requestId: Type.String(),
  step: Type.Integer(),
  at: Type.String({ description: 'Time of admission.' }),
  userId: Type.Integer(),
  teamIds: Type.Array(Type.Integer(), { description: 'Teams that it was charged to.' }),
  keyId: Type.Integer(),
  app: Type.String(),
  face: Type.String(),
  tags: Type.Record(Type.String(), Type.String(), { description: 'Tags that the caller sent as x-dragoman-tags.' }),
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
  balance: Type.Enum(['inference', 'train'], { description: 'The balance that the plan tokens were taken from.' }),
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
      status: Type.Optional(Type.Integer({ description: "If the attempt failed: the provider's HTTP status." })),
      code: Type.Optional(Type.String({ description: "If the attempt failed: the provider's error code, or that of the connection." })),
      said: Type.Optional(Type.String({ description: 'If the provider refused the request: the first sentence of its message, masked.' })),
    }),
    { description: 'The attempts, in order.' },
  ),
});

/** Content types of the answer with `format`. */
const reportTypes = ['text/csv', 'application/x-ndjson'];

const text = Type.Optional(Type.String({ description: 'Its first 2,000 characters, where it is kept and may be seen.' }));

const LogDetailObject = Type.Object({ ...Detail.properties, steps: Type.Array(Detail), prompt: text, response: text });

export interface UsagePlace {
  /** `/server/mine`: `/usage` and `/logs` are below it. */
  readonly root: string;
  readonly scope: 'admin' | 'unscoped';
  readonly owner: 'admin' | 'caller';
  /** Whether any user's rows may be asked for. */
  readonly takesUser: boolean;
  /** Whether administrators may ask for what another user finds there, by `owner`. */
  readonly takesOwner: boolean;
  /** Only such rows are there for this caller. @throws Fault `not-found` */
  readonly within: (
    caller: Caller,
    params: Readonly<Record<string, string>>,
    query: { readonly owner?: number | undefined },
  ) => UsageFilter | Promise<UsageFilter>;
  /** What was asked and answered, as far as it is kept and the caller may see it. Absent: nothing. */
  readonly textOf?: (
    request: Pick<LoggedRow, 'requestId' | 'userId' | 'at'>,
    caller: Caller,
    by: Actor,
  ) => Promise<{ readonly prompt: string; readonly response: string } | undefined>;
}

/** The place of administrators, who see everything but for texts. */
export const allUsage: UsagePlace = { root: '/server/admin', scope: 'admin', owner: 'admin', takesUser: true, takesOwner: false, within: () => ({}) };

/** The place of each user, who sees what is theirs. */
export const ownUsage: UsagePlace = {
  root: '/server/mine',
  scope: 'unscoped',
  owner: 'caller',
  takesUser: false,
  takesOwner: true,
  within: (caller, _params, query) => ({ userId: ownerOf(caller, query) }),
};

/** Routes of usage sums and of the request log. @param timeNow milliseconds since 1970, for the current month */
export function usageRoutes(reading: UsageReading, timeNow: () => Promise<number>, place: UsagePlace): readonly NounRoute[] {
  const { root, scope, owner, takesUser, takesOwner, within, textOf } = place;
  const common = { scope, owner } as const;
  const byOwner = (takesOwner ? ownerQuery : {}) as typeof ownerQuery; // members that may be absent from the query may be absent from its schema
  const whose = { ...((takesUser ? userId : {}) as typeof userId), ...byOwner };
  return [
    nounRoute('GET', `${root}/usage`, {
      ...common,
      summary: 'What was used in a time, in sums.',
      query: closed({ ...usageQuery, ...whose }),
      output: Type.Object({ items: Type.Array(UsageItem) }),
      sends: reportTypes,
      async answer({ caller, params, query }) {
        const { format, groupBy = '' } = query;
        const only = await within(caller, params, query);
        const tz = query.tz === undefined ? undefined : timeZoneOf(query.tz);
        if (tz === undefined && query.tz !== undefined) throw unknownZone();
        const words = groupsIn(groupBy);
        const wanted = { ...(await monthOr({ ...query, tz }, timeNow)), ...filterOf(query), ...only, groupBy: words, tz };
        const items = await reading.usage(wanted);
        return format === undefined ? itemsOf(items) : report(format, 'usage', [...words, ...Object.keys(sums)], inPages(items));
      },
    }),
    nounRoute('GET', `${root}/logs`, {
      ...common,
      summary: 'The log of requests, newest first.',
      query: closed({ ...logsQuery, ...whose }),
      output: pageSchema(Type.Object(logItem)),
      sends: reportTypes,
      async answer({ caller, params, query }) {
        const { format, limit = 50, cursor, from, to } = query;
        const only = await within(caller, params, query);
        const span = { from: from === undefined ? undefined : instantIn('from', from), to: to === undefined ? undefined : instantIn('to', to) };
        const wanted = { ...span, ...filterOf(query), ...only };
        return format === undefined ? reading.logs({ ...wanted, limit, cursor }) : report(format, 'logs', Object.keys(logItem), reading.allLogs(wanted));
      },
    }),
    nounRoute('GET', `${root}/logs/:requestId`, {
      ...common,
      summary: 'One request with each attempt; the further steps of one that took several stand in `steps`.',
      query: closed(byOwner),
      output: LogDetailObject,
      async answer({ caller, by, params, query }) {
        const { requestId = '' } = params;
        const { userId: own, team } = await within(caller, params, query);
        if (!/^[\w-]{1,100}$/.test(requestId)) throw unknownThing('request');
        const all = await reading.log(requestId);
        const [first, ...steps] = all.filter((row) => (own === undefined || row.userId === own) && (team === undefined || row.teamIds.includes(team)));
        if (!first) throw unknownThing('request');
        return { ...detail(first), steps: steps.map(detail), ...(await textOf?.(first, caller, by)) };
      },
    }),
  ];
}

/** From when to when it is asked for: what is absent is that of the current month in the time zone. */
async function monthOr(
  { from, to, tz = 'UTC' }: { readonly from?: string | undefined; readonly to?: string | undefined; readonly tz: string | undefined },
  timeNow: () => Promise<number>,
) {
  const month = monthIn(tz, from === undefined || to === undefined ? await timeNow() : 0);
  const begin = from === undefined ? month.from : instantIn('from', from);
  const end = to === undefined ? Math.max(month.to, begin) : instantIn('to', to);
  if (end < begin && from === undefined) throw invalid('from', 'is needed with a to before this month, where it begins without one');
  if (end < begin) throw invalid('to', 'must not be before from');
  return { from: begin, to: end };
}

type Filters = Omit<UsageFilter, 'tag'> & { readonly tag?: string | undefined };

function filterOf({ userId: user, keyId, team, model, app, face, provider, region, status, end, tag }: Filters): UsageFilter {
  return { userId: user, keyId, team, model, app, face, provider, region, status, end, tag: tag === undefined ? undefined : tagIn(tag) };
}

function tagIn(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf(':');
  if (at < 1) throw invalid('tag', 'must be NAME:VALUE, such as project:alpha');
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}

const detail = (row: LogDetail) => ({ ...row, attempts: row.attempts.length, tries: row.attempts });

function groupsIn(text: string): readonly Group[] {
  const words = text.split(',').map((word) => word.trim());
  const given = words.length === 1 && words[0] === '' ? [] : words;
  return [...new Set(given)].map((word) => {
    if (!isGroup(word)) throw invalid('groupBy', `must be words out of ${groups.join(', ')} and tag:NAME, with commas between them`);
    return word;
  });
}
