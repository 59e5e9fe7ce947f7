import { Type } from 'typebox';
import type { Runs } from '#core/run';
import { nounRoute, unknownThing, Updates, type NounRoute } from '#http/noun-route';
import { afterOf, followingFailed, updatesOf } from './updates.ts';

/** Deep runs in the words of the native interface. They are begun by `/server/query`. */
export function nativeRunRoutes(runs: Pick<Runs, 'one' | 'follow'>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/get-deep-agent', {
      summary:
        'Follows a deep agent: its events from the start, or behind `Last-Event-ID`, and then as they come. Server-sent events where `Accept` names `text/event-stream`, else objects with `@|@sep@|@` between them.',
      scope: 'agent_builder',
      owner: 'caller',
      sends: ['text/event-stream', 'text/plain'],
      input: Type.Object({
        deep_agent_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'As `/server/query` gave it, in `added_obj`.' }),
      }),
      async answer({ caller, input, lastEventId, signal }) {
        const id = String(input.deep_agent_id);
        const after = afterOf(lastEventId);
        const { kind } = await runs.one(caller.userId, id);
        if (kind !== 'deep_agent') throw unknownThing('run');
        return new Updates(updatesOf(runs.follow(caller.userId, id, { after, signal })), followingFailed, 'text');
      },
    }),
  ];
}
