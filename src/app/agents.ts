import type { Settings } from '#config/index';
import type { Caller } from '#core/context';
import { modelNamed, unknownModel } from '#core/known-models';
import type { ToolSource } from '#core/mcp-offers';
import type { SearchPassages } from '#core/passages';
import type { NounRoute } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import { memoryOf, type ByteBudget } from '#kit/memory/byte-budget';
import { agentLoop } from '#resources/agents/loop';
import type { NativeAgentDeps } from '#resources/agents/beginning';
import { nativeAgentRoutes } from '#resources/agents/native-routes';
import { agentTools } from '#resources/agents/offered';
import { agentRoutes } from '#resources/agents/routes';
import { kind, openAgents } from '#resources/agents/store';
import type { AgentToolsDeps } from '#resources/agents/tools';
import type { Rights } from '#resources/api-keys/rights';
import { audit } from '#resources/audit/store';
import { nativeRunRoutes } from '#resources/runs/native-routes';
import { runRoutes } from '#resources/runs/routes';
import { openRuns, type OpenRuns } from '#resources/runs/store';
import { openSharing } from '#resources/sharing';
import { problemsTo, type Log } from '#telemetry/log';
import type { Acting } from './acting.ts';
import type { Calls } from './calls.ts';
import type { Database } from './database.ts';
import { deepAgentLoop } from './deep-agent.ts';
import type { OpenPlugins } from './plugins.ts';

export interface AgentsDeps {
  readonly database: Pick<Database, 'store' | 'seal'>;
  readonly settings: () => Settings;
  readonly calls: Pick<Calls, 'pipeline' | 'schemas' | 'runtime' | 'web' | 'models'>;
  readonly acting: Pick<Acting, 'tools' | 'ofAgents'>;
  readonly plugins: Pick<OpenPlugins, 'plugins' | 'requests'>;
  readonly dataset: AgentToolsDeps['dataset'];
  readonly search: SearchPassages;
  readonly convert: NativeAgentDeps['convert'];
  readonly rights: Pick<Rights, 'callerOf' | 'watch'>;
  /** The memory of requests and of runs. */
  readonly budget: ByteBudget;
  readonly clock: Clock;
  readonly log: Log;
}

export interface OpenAgents {
  readonly runs: OpenRuns;
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
  /** As they are offered to clients of MCP. */
  readonly offered: ToolSource;
  close(): Promise<void>;
}

export function openAgentsNoun({ database, settings, calls, acting, plugins, dataset, search, convert, rights, budget, clock, log }: AgentsDeps): OpenAgents {
  const { store, seal } = database;
  const { chatcompat: generate, affords } = calls.pipeline;
  const agents = openAgents(store);
  const sharing = openSharing({ store, audit, kind, lock: agents.lock });
  const runs = openRuns({
    store,
    seal,
    clock,
    rights,
    memoryOf: (userId) => memoryOf(budget, userId),
    log: problemsTo(log),
  });
  const defaultModel = () => settings().defaults.chat;
  const keepsTo = calls.schemas.against;
  const tools: AgentToolsDeps = {
    agents,
    servers: acting.ofAgents,
    plugins: plugins.plugins,
    dataset,
    search,
    requests: plugins.requests,
    keepsTo,
    generate,
    defaultModel,
  };
  runs.work({ loops: { agent: agentLoop({ ...tools, today: () => todayIn(clock) }), deep_agent: deepAgentLoop({ calls, acting, search }) }, generate });
  const checks = {
    mcp: acting.ofAgents.one,
    plugin: plugins.plugins.callable,
    dataset,
    agent: agents.runnable,
    model: (caller: Caller, name: string) => {
      const models = calls.models(caller);
      if (modelNamed(models, name)?.kind !== 'chat') throw unknownModel(name, models);
    },
    request: plugins.requests.check,
    isPattern: calls.schemas.isPattern,
  };
  const executing = { agents, runs, affords, convert, keepsTo, defaultModel, seconds: () => settings().limits.agentSeconds };
  return {
    runs,
    native: [...nativeAgentRoutes(executing), ...nativeRunRoutes(runs)],
    offered: agentTools(executing),
    own: [...agentRoutes({ store, audit, agents, sharing, checks }), ...runRoutes(runs)],
    close: () => runs.close(),
  };
}

const date = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const todayIn = (clock: Clock): string => `Today is ${date.format(clock.now())} (UTC).`;
