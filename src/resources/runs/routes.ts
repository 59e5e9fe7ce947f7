import { Type } from 'typebox';
import type { JsonObject } from '#core/json';
import type { ShownRun } from '#core/run';
import { nounRoute, Updates, type NounRoute } from '#http/noun-route';
import { closed, nullable, shownAs } from '#http/schemas';
import { ownerOf, ownerQuery } from '../owner.ts';
import { cursorOf, idBefore, pageOf, pageQuery, pageSchema } from '../pagination.ts';
import type { OpenRuns } from './store.ts';
import { afterOf, followingFailed, updatesOf } from './updates.ts';

const object = Type.Unsafe<JsonObject>(Type.Object({}));
const WaitsForObject = Type.Union([
  Type.Object({ type: Type.Literal('approval'), call: Type.String(), server: nullable(Type.String()), tool: Type.String(), arguments: object }),
  Type.Object({
    type: Type.Literal('question'),
    question: Type.String(),
    message: Type.String(),
    schema: Type.Optional(object),
    url: Type.Optional(Type.String()),
  }),
]);

const RunObject = Type.Object({
  id: Type.Integer(),
  kind: Type.Enum(['agent', 'deep_agent']),
  agentId: nullable(Type.Integer()),
  version: nullable(Type.Integer()),
  state: Type.Enum(['running', 'waiting', 'completed', 'failed', 'cancelled']),
  waitsFor: nullable(WaitsForObject),
  message: nullable(Type.String({ description: 'The answer, when the run is completed.' })),
  error: nullable(Type.String({ description: 'Why it failed.' })),
  steps: Type.Integer({ description: 'Answers of models.' }),
  calls: Type.Integer({ description: 'Calls of tools.' }),
  planTokens: Type.Integer(),
  costUsd: nullable(Type.Number()),
  requestId: Type.String(),
  startedAt: Type.String(),
  endedAt: nullable(Type.String()),
});

const id = { minLength: 1, maxLength: 200 };
const root = '/server/mine/runs';
const common = { scope: 'agent_builder', owner: 'caller', output: RunObject } as const;
const query = closed(ownerQuery);

/** A user's runs. Another's is not there. */
export function runRoutes(runs: OpenRuns): readonly NounRoute[] {
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists your runs of agents, the newest first; they are kept for 30 days.',
      query: closed({
        ...ownerQuery,
        ...pageQuery,
        kind: Type.Optional(RunObject.properties.kind),
        state: Type.Optional(RunObject.properties.state),
        agentId: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
      }),
      output: pageSchema(RunObject),
      async answer({ caller, query: { limit = 50, cursor, kind, state, agentId, ...whose } }) {
        const found = await runs.list(ownerOf(caller, whose), { kind, state, agentId, before: idBefore('runs', cursor), limit: limit + 1 });
        const { items, nextCursor } = pageOf(found, limit, ({ number }) => cursorOf('runs', [number]));
        return { items: items.map(shown), nextCursor };
      },
    }),
    nounRoute('GET', `${root}/:id`, {
      ...common,
      summary: 'One of your runs.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await runs.one(ownerOf(caller, whose), params['id']!)),
    }),
    nounRoute('GET', `${root}/:id/events`, {
      scope: 'agent_builder',
      owner: 'caller',
      summary: 'The events of a run as server-sent events: from the start, or behind `Last-Event-ID`, and then as they come.',
      query,
      sends: ['text/event-stream'],
      async answer({ caller, params, query: whose, lastEventId, signal }) {
        const userId = ownerOf(caller, whose);
        const run = await runs.one(userId, params['id']!);
        return new Updates(updatesOf(runs.follow(userId, run.id, { after: afterOf(lastEventId), signal })), followingFailed);
      },
    }),
    ...decisionRoutes(runs),
  ];
}

/** What users do with runs. */
function decisionRoutes(runs: OpenRuns): readonly NounRoute[] {
  return [
    nounRoute('POST', `${root}/:id/cancel`, {
      ...common,
      summary: 'Ends a run.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await runs.cancel(ownerOf(caller, whose), params['id']!)),
    }),
    nounRoute('POST', `${root}/:id/approve`, {
      ...common,
      summary: 'Approves or refuses a call that a run waits for.',
      query,
      input: closed({
        call: Type.String({ ...id, description: 'Of `waitsFor`.' }),
        approved: Type.Boolean(),
        always: Type.Optional(Type.Boolean({ description: 'Later calls of the tool need no approval, where it may be given once for all.' })),
      }),
      answer: async ({ caller, params, query: whose, input: { call, approved, always = false } }) =>
        shown(await runs.approve({ userId: ownerOf(caller, whose), by: caller }, params['id']!, call, { approved, always })),
    }),
    nounRoute('POST', `${root}/:id/answer`, {
      ...common,
      summary: 'Answers a question that a run waits for.',
      query,
      input: closed({
        question: Type.String({ ...id, description: 'Of `waitsFor`.' }),
        action: Type.Enum(['accept', 'decline', 'cancel']),
        content: Type.Optional(object),
      }),
      answer: async ({ caller, params, query: whose, input: { question, action, content } }) =>
        shown(await runs.answer({ userId: ownerOf(caller, whose), by: caller }, params['id']!, question, { action, ...(content ? { content } : {}) })),
    }),
    nounRoute('POST', `${root}/:id/resume`, {
      ...common,
      summary: 'Lets a run that has failed go on from its last step.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await runs.resume({ userId: ownerOf(caller, whose), by: caller }, params['id']!)),
    }),
  ];
}

const shownRun = shownAs(RunObject);
const shown = ({ id: runId, ...run }: ShownRun) => shownRun({ ...run, id: Number(runId) });
