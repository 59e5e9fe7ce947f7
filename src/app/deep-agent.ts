import type { Settings } from '#config/index';
import { ifFound } from '#core/fault';
import type { SearchPassages } from '#core/passages';
import type { RunLoop, Runs, ShownRun } from '#core/run';
import type { DeepRuns } from '#resources/deep-question';
import { deepAgent, type DeepAgentDeps } from '#resources/deep-agent/deep-agent';
import { deepLimits } from '#resources/deep-agent/limits';
import { askedOf } from '#resources/deep-agent/question';
import type { Acting } from './acting.ts';
import type { Calls } from './calls.ts';
import { webOf } from './web.ts';

export interface DeepAgentLoopDeps {
  readonly calls: Pick<Calls, 'runtime' | 'web'>;
  readonly acting: Pick<Acting, 'tools' | 'ofAgents'>;
  readonly search: SearchPassages;
}

export function deepAgentLoop({ calls, acting, search }: DeepAgentLoopDeps): RunLoop {
  return deepAgent({
    search,
    web: webOf(calls),
    tools: { offered: offeredBy(acting), call: acting.tools.call },
    contextOf: (model) => calls.runtime().models.find(model)?.limits.context,
  });
}

/** The tools that are wanted, approved by being named unless every call is to be approved, with what clients are told of them. */
const offeredBy =
  ({ tools, ofAgents }: DeepAgentLoopDeps['acting']): DeepAgentDeps['tools']['offered'] =>
  async (caller, wanted, signal) => {
    const { tools: offered, unknown } = await tools.offered(caller, wanted, signal);
    const servers = [...new Set(offered.map(({ server }) => server))];
    const known = await ofAgents.of(
      caller,
      servers.map((server) => ({ server })),
      signal,
    );
    const named = offered.flatMap((tool) => {
      const one = known.find((other) => other.server === tool.server && other.name === tool.name && other.digest === tool.digest);
      return one ? [{ ...one, ...tool }] : [];
    });
    return { tools: named, unknown };
  };

/** Runs as questions begin them. */
export function deepRunsBy(runs: Runs, settings: () => Pick<Settings, 'limits'>): DeepRuns {
  const found = async (userId: number, id: number): Promise<ShownRun | undefined> => {
    const run = await ifFound(runs.one(userId, String(id)));
    return run?.kind === 'deep_agent' ? run : undefined;
  };
  return {
    async begin(question, { caller, requestId, address, app, tags, targets, strict, cacheSeconds }) {
      const limits = deepLimits(settings().limits.agentSeconds);
      const asked = { ...askedOf(question), address, tags, targets, strict, cacheSeconds };
      return Number(await runs.begin({ kind: 'deep_agent', agentId: null, version: null, asked, limits, requestId, caller, app }));
    },
    async find(userId, id) {
      const run = await found(userId, id);
      if (!run) return undefined;
      const { state, waitsFor, message } = run;
      return { isOver: state !== 'running' && state !== 'waiting', report: message, question: waitsFor?.type === 'question' ? waitsFor.question : null };
    },
    async answer(caller, id, question, text) {
      await runs.answer({ userId: caller.userId, by: caller }, String(id), question, { action: 'accept', content: { answer: text } });
    },
  };
}
