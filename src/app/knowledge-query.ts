import type { Settings } from '#config/index';
import type { PromptSource, ToolSource } from '#core/mcp-offers';
import type { SearchPassages } from '#core/passages';
import type { NounRoute } from '#http/noun-route';
import { runAll } from '#kit/async/run-all';
import type { Clock } from '#kit/async/clock';
import { audit } from '#resources/audit/store';
import { nativeChatRoutes } from '#resources/chats/native-routes';
import { chatRoutes } from '#resources/chats/routes';
import { kind as chatKind, openChats } from '#resources/chats/store';
import { modelListRoutes } from '#resources/models/native-routes';
import { personaPrompts } from '#resources/personas/prompts';
import { nativePersonaRoutes, personaRoutes } from '#resources/personas/routes';
import { kind as personaKind, type PersonaStore } from '#resources/personas/store';
import type { QueryDeps } from '#resources/query/deps';
import { pluginTools } from '#resources/query/plugin-tools';
import { queryRoutes } from '#resources/query/routes';
import { speechRoutes } from '#resources/speech/native-routes';
import { openSharing } from '#resources/sharing';
import { tokenizerRoutes } from '#resources/tokenizer/native-routes';
import { nativeVoteRoutes, voteRoutes } from '#resources/votes/routes';
import { openVotes } from '#resources/votes/store';
import { problemsTo, type Log } from '#telemetry/log';
import type { Acting } from './acting.ts';
import { openAgentsNoun, type AgentsDeps } from './agents.ts';
import type { Calls } from './calls.ts';
import { deepRunsBy } from './deep-agent.ts';
import { openPluginsNoun } from './plugins.ts';
import { webOf } from './web.ts';
import type { Database } from './database.ts';

export interface KnowledgeQueryDeps {
  readonly database: Pick<Database, 'store' | 'seal'>;
  readonly calls: Pick<Calls, 'pipeline' | 'models' | 'runtime' | 'countTokens' | 'web' | 'schemas'>;
  readonly personas: PersonaStore;
  readonly search: SearchPassages;
  readonly acting: Pick<Acting, 'waiting' | 'resolve' | 'streams' | 'tools' | 'ofAgents'>;
  readonly dataset: AgentsDeps['dataset'];
  readonly rights: AgentsDeps['rights'];
  readonly budget: AgentsDeps['budget'];
  /** Reads attached files; absent: they are not read. */
  readonly convert?: QueryDeps['convert'];
  readonly allowed: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** What users ask with: questions, models, personas, chats, votes and the tokenizer. */
export interface KnowledgeQuery {
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
  readonly admin: readonly NounRoute[];
  /** Plugins, for clients of MCP. */
  readonly tools: readonly ToolSource[];
  /** Personas, for clients of MCP. */
  readonly prompts: PromptSource;
  close(): Promise<void>;
}

export function openKnowledgeQuery(deps: KnowledgeQueryDeps): KnowledgeQuery {
  const { database, calls, personas, search, acting, convert, allowed, dataset, rights, budget, clock, log } = deps;
  const { store, seal } = database;
  const { models, countTokens } = calls;
  const settings = () => calls.runtime().settings;
  const problem = problemsTo(log);
  const sharing = openSharing({ store, audit, kind: personaKind, lock: personas.lock });
  const chats = openChats(store);
  const chatSharing = openSharing({ store, audit, kind: chatKind, lock: chats.lock, idOf: chats.idOf });
  const bodies = () => ({ areKept: settings().bodies !== 'none', days: settings().retention.bodiesDays });
  const votes = openVotes({ store, seal, clock, bodies, log: problem });
  const plugins = openPluginsNoun({ database, calls, acting, search, convert, allowed, clock });
  const agents = openAgentsNoun({ database, settings, calls, acting, plugins, dataset, search, convert, rights, budget, clock, log });
  const queries: QueryDeps = {
    deepRuns: deepRunsBy(agents.runs, settings),
    generate: calls.pipeline.chatcompat,
    affords: calls.pipeline.affords,
    enters: calls.pipeline.enters,
    models,
    defaults: () => defaultsIn(settings()),
    promptOf: async (caller, persona) => (await personas.usable(caller, persona)).prompt,
    search,
    convert,
    plugins: plugins.plugins,
    countTokens,
    web: webOf(calls),
    waiting: acting.waiting,
    keep: (answer) => votes.keep(answer).catch((error: unknown) => problem('An answer could not be kept: nobody can vote on it.', error)),
    leadingNewlines: () => settings().compat.leadingNewlines,
    clock,
  };
  return {
    native: [
      ...modelListRoutes({ models, aliasesOf: (name) => settings().models[name]?.aliases ?? [] }),
      ...tokenizerRoutes({ models, countTokens }),
      ...nativePersonaRoutes(personas),
      ...plugins.native,
      ...agents.native,
      ...queryRoutes(queries),
      ...speechRoutes({ models, speak: calls.pipeline.speak, defaultSpeech: () => settings().defaults.speech }),
      ...nativeVoteRoutes(votes),
      ...nativeChatRoutes(chats),
    ],
    own: [...personaRoutes(personas, sharing), ...plugins.own, ...agents.own, ...chatRoutes(chats, chatSharing)],
    admin: voteRoutes(votes, store, audit),
    tools: [pluginTools(queries), agents.offered],
    prompts: personaPrompts(personas),
    close: () => runAll([() => agents.close(), () => votes.close(), () => plugins.close()]),
  };
}

function defaultsIn({ defaults, providers }: Settings): ReturnType<QueryDeps['defaults']> {
  const { chat, followUp } = defaults;
  return { chat, followUp, rewording: Object.keys(providers).length > 0 ? followUp : undefined };
}
