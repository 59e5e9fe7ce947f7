import type { Fault } from '#core/fault';
import type { JsonObject } from '#core/json';
import type { Runs, ShownRun, ToldEvent } from '#core/run';
import type { Update } from '#http/noun-route';
import { ClientLeft } from '#kit/async/client-left';
import type { Agent } from './types.ts';

/** A run that a request waits for. */
export interface Execution {
  readonly runs: Pick<Runs, 'follow' | 'one' | 'cancel'>;
  readonly userId: number;
  readonly id: string;
  readonly agent: Agent;
  readonly signal: AbortSignal;
}

/** What became of one answer of a model, or one call of a tool. */
interface NodeExecution {
  readonly node_id: string;
  readonly node_type: 'llm' | 'tool';
  readonly status: 'running' | 'completed' | 'failed';
  readonly output: JsonObject;
  readonly error: string | null;
  readonly metadata: JsonObject;
}

const workflowOf = ({ id, uuid, version, definition: { name } }: Agent) => ({ id, uuid, name, version });

/** The events of a run until it ends or waits. A run whose client leaves is cancelled. */
async function* eventsOf({ runs, userId, id, signal }: Execution): AsyncGenerator<ToldEvent | undefined> {
  try {
    yield* runs.follow(userId, id, { after: 0, signal, untilWaits: true });
  } finally {
    if (signal.reason instanceof ClientLeft) await runs.cancel(userId, id).catch(() => {});
  }
}

/** The run as one answer, when it has ended or waits for its user. */
export async function executed(execution: Execution): Promise<object> {
  const nodes = new Nodes();
  let last: ToldEvent | undefined;
  for await (const told of eventsOf(execution)) {
    if (!told) continue;
    nodes.take(told);
    last = told;
  }
  return resultOf(execution, await execution.runs.one(execution.userId, execution.id), nodes.all, last);
}

/** How a run that was not completed ended. */
const failureOf = (last: ToldEvent | undefined) => (last?.event === 'run.failed' && last.data.code === 'timed-out' ? 'timeout' : 'failed');

function resultOf({ agent }: Execution, run: ShownRun, nodes: readonly NodeExecution[], last: ToldEvent | undefined): object {
  return {
    execution_status: run.state === 'failed' || run.state === 'cancelled' ? failureOf(last) : run.state,
    execution_id: run.id,
    duration_ms: (run.endedAt ?? new Date()).getTime() - run.startedAt.getTime(),
    response: responseOf(run.message ?? '', nodes),
    workflow: workflowOf(agent),
    node_executions: nodes,
    error: run.state === 'cancelled' ? 'The run was cancelled.' : run.error,
    waitsFor: run.waitsFor,
  };
}

const responseOf = (text: string, nodes: readonly NodeExecution[]) => ({
  response: text,
  type: 'text',
  source: nodes.findLast(({ node_type: type }) => type === 'llm')?.node_id ?? 'llm_1',
  metadata: {},
});

/** The run as it goes on, in the words of workflows. */
export async function* executing(execution: Execution): AsyncGenerator<Update> {
  const { agent, runs, userId, id } = execution;
  const nodes = new Nodes();
  yield update('workflow_started', { execution_id: id, workflow: workflowOf(agent) }, new Date().toISOString());
  for await (const told of eventsOf(execution)) {
    if (!told) {
      yield update('heartbeat', {}, new Date().toISOString());
      continue;
    }
    const { timestamp } = told;
    if (told.event === 'message.delta' && (told.place === 'main' || agent.definition.mode === 'router'))
      yield update('token', { delta: told.data.delta }, timestamp);
    for (const node of nodes.take(told)) {
      const { node_id, node_type, output, error } = node;
      if (node.status === 'failed') yield update('node_error', { node_id, node_type, error }, timestamp);
      else yield update('node_completed', { node_id, node_type, output }, timestamp);
    }
    if (told.event === 'run.completed') {
      const response = responseOf(told.data.message, nodes.all);
      yield update('agent_response', { ...response, citations: told.data.citations }, timestamp);
      yield update('workflow_completed', { execution_id: id, execution_status: 'completed', output: response }, timestamp);
    }
    if (told.event === 'run.failed' || told.event === 'run.cancelled') {
      const error = told.event === 'run.cancelled' ? 'The run was cancelled.' : told.data.message;
      yield update('workflow_failed', { execution_id: id, execution_status: failureOf(told), error }, timestamp);
    }
  }
  const { state, waitsFor } = await runs.one(userId, id);
  if (state === 'waiting') yield update('workflow_waiting', { execution_id: id, waitsFor }, new Date().toISOString());
}

/** The last that a client is told when the stream is cut: of the run it says something only where the caller may no longer have it. */
export const executingFailed =
  ({ id }: Pick<Execution, 'id'>) =>
  ({ message, status }: Fault): Update => {
    const isEnded = status === 401 || status === 403;
    return update('workflow_failed', { execution_id: id, execution_status: isEnded ? 'failed' : 'unknown', error: message }, new Date().toISOString());
  };

const update = (event: string, data: object, timestamp: string): Update => ({ event, value: { event, data, timestamp } });

/** The answers and calls of a run by what it tells. Those of agents that work for it are not among them. */
class Nodes {
  readonly all: NodeExecution[] = [];
  #answers = 0;
  #text = '';

  /** @returns the nodes that have ended */
  take(told: ToldEvent): readonly NodeExecution[] {
    const isEnd = told.event.startsWith('run.') && told.event !== 'run.started';
    if (told.place !== 'main') return [];
    switch (told.event) {
      case 'step.started': {
        const ended = this.#endAnswer('completed', null);
        this.#answers++;
        this.#text = '';
        this.all.push({ node_id: `llm_${this.#answers}`, node_type: 'llm', status: 'running', output: {}, error: null, metadata: { name: told.data.name } });
        return ended;
      }
      case 'message.delta':
        this.#text += told.data.delta;
        return [];
      case 'tool.call': {
        const ended = this.#endAnswer('completed', null);
        const { call, tool, server } = told.data;
        this.all.push({ node_id: call, node_type: 'tool', status: 'running', output: {}, error: null, metadata: { tool, server } });
        return ended;
      }
      case 'tool.result': {
        const { call, text, isError } = told.data;
        const at = this.all.findIndex(({ node_id: id }) => id === call);
        if (at < 0) return [];
        const node = { ...this.all[at]!, status: isError ? ('failed' as const) : ('completed' as const), output: { text }, error: isError ? text : null };
        this.all[at] = node;
        return [node];
      }
      default:
        return isEnd ? this.#endAnswer(told.event === 'run.completed' ? 'completed' : 'failed', told.event === 'run.failed' ? told.data.message : null) : [];
    }
  }

  #endAnswer(status: 'completed' | 'failed', error: string | null): readonly NodeExecution[] {
    const at = this.all.findLastIndex(({ node_type: type, status: now }) => type === 'llm' && now === 'running');
    if (at < 0) return [];
    const node = { ...this.all[at]!, status, output: { text: this.#text }, error };
    this.all[at] = node;
    return [node];
  }
}
