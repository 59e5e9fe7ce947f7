import { Type, type Static } from 'typebox';
import type { JsonObject } from '#core/json';
import { nounRoute, Updates, type NounRoute } from '#http/noun-route';
import { nullable } from '#http/schemas';
import { begun, type NativeAgentDeps } from './beginning.ts';
import { executed, executing, executingFailed } from './execution.ts';
import type { Agent, OwnAgent } from './types.ts';

const Item = Type.Object({
  id: Type.Integer(),
  uuid: Type.String(),
  name: Type.String(),
  description: Type.String(),
  agent_mode: Type.Enum(['single', 'router', 'autonomous']),
  primary_workflow_uuid: Type.String(),
  current_version: Type.Integer(),
  is_published: Type.Boolean(),
  created_at: Type.String(),
  updated_at: Type.String(),
});

const ListFields = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '20 by default.' })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  search: Type.Optional(Type.String({ maxLength: 200, description: 'In the name or the description.' })),
});

const ExecuteFields = Type.Object({
  agent_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  message: Type.String({ minLength: 1, maxLength: 400_000 }),
  streaming: Type.Optional(Type.Boolean({ description: 'By default true if `Accept` names `text/event-stream` or `text/plain`, else false.' })),
  variables: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}, { description: 'Values by the names that the agent declares.' }))),
  conversation_history: Type.Optional(
    Type.Array(
      Type.Object({ message: Type.String({ maxLength: 400_000 }), user: Type.Enum(['me', 'system'], { description: '`me`: the user; `system`: the agent.' }) }),
      {
        maxItems: 500,
      },
    ),
  ),
});

const Executed = Type.Object({
  execution_status: Type.Enum(['completed', 'failed', 'timeout', 'waiting', 'unknown']),
  execution_id: Type.String({ description: 'The id of the run, as under `/server/mine/runs`.' }),
  duration_ms: Type.Integer(),
  response: Type.Object({ response: Type.String(), type: Type.Literal('text'), source: Type.String(), metadata: Type.Object({}) }),
  workflow: Type.Object({ id: Type.Integer(), uuid: Type.String(), name: Type.String(), version: Type.Integer() }),
  node_executions: Type.Array(
    Type.Object({
      node_id: Type.String(),
      node_type: Type.Enum(['llm', 'tool']),
      status: Type.String(),
      output: Type.Object({}),
      error: nullable(Type.String()),
      metadata: Type.Object({}),
    }),
  ),
  error: nullable(Type.String()),
  waitsFor: nullable(Type.Object({}, { description: 'As of the run: an approval or a question. It is answered under `/server/mine/runs`.' })),
});

/** The page of a list whose length is not asked for. */
const usualPage = 20;

/** Agents in the words of the native interface. */
export function nativeAgentRoutes(deps: NativeAgentDeps): readonly NounRoute[] {
  const common = { scope: 'agent_builder', owner: 'caller' } as const;
  return [
    nounRoute('POST', '/server/list-agents', {
      ...common,
      summary: 'The agents that may be run: the built-in ones, your own, and those shared with you.',
      input: ListFields,
      inputMayBeLeftOut: true,
      output: Type.Object({
        response: Type.Array(Item),
        count: Type.Integer(),
        total: Type.Optional(Type.Integer()),
        limit: Type.Optional(Type.Integer()),
        offset: Type.Optional(Type.Integer()),
      }),
      async answer({ caller, input }) {
        const isPage = input.limit !== undefined || input.offset !== undefined || input.search !== undefined;
        const { limit = isPage ? usualPage : mostListed, offset = 0, search } = input;
        const { agents, total } = await deps.agents.page(caller, { limit, offset, search });
        return { response: agents.map(listed), count: agents.length, ...(isPage ? { total, limit, offset } : {}) };
      },
    }),
    nounRoute('POST', '/server/execute-agent', {
      ...common,
      summary: 'Runs an agent as it is stored: with a message, values for its variables, the conversation before it, and files.',
      spends: true,
      numbersAsWritten: true,
      input: ExecuteFields,
      output: Executed,
      sends: ['text/event-stream', 'text/plain'],
      async answer({ caller, by, input, files, signal, framing, choices }) {
        const agent = await deps.agents.runnable(caller, input.agent_id);
        const id = await begun({ caller, agent, input, files, signal, requestId: by.requestId ?? '', address: by.address ?? undefined, choices }, deps);
        const execution = { runs: deps.runs, userId: caller.userId, id, agent, signal };
        return (input.streaming ?? framing !== undefined) ? new Updates(executing(execution), executingFailed(execution)) : executed(execution);
      },
    }),
  ];
}

/** Agents in a list for clients that read no pages. */
const mostListed = 2000;

function listed({ id, uuid, version, definition: { name, description, mode }, isPublished, createdAt, updatedAt }: Agent | OwnAgent): Static<typeof Item> {
  return {
    id,
    uuid,
    name,
    description,
    agent_mode: mode,
    primary_workflow_uuid: uuid,
    current_version: version,
    is_published: isPublished,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  };
}
