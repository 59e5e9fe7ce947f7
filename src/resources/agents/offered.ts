import { Fault, ifFound } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import type { OfferedTool, ToolAnswer, ToolSource } from '#core/mcp-offers';
import type { Context } from '#core/context';
import type { ShownRun } from '#core/run';
import { withRefs } from '#core/schema-refs';
import { begun, type NativeAgentDeps } from './beginning.ts';
import { executed } from './execution.ts';
import type { Agent } from './types.ts';

const prefix = 'agent__';
/** Agents in a list. */
const mostListed = 500;
const longestMessage = 400_000;

/** The agents that the caller may run, as tools: each call is a run. */
export function agentTools(deps: NativeAgentDeps): ToolSource {
  return {
    scopes: ['agent_builder'],
    async *tools({ caller }) {
      const { agents } = await deps.agents.page(caller, { offset: 0, limit: mostListed });
      for (const agent of agents) yield offered(agent);
    },
    async call(name, args, context) {
      const { caller } = context;
      const [, id] = /^agent__([1-9]\d{0,14})$/.exec(name) ?? [];
      if (id === undefined) return undefined;
      const agent = await ifFound(deps.agents.runnable(caller, Number(id)));
      return agent && answered(agent, inputOf(args), context, deps);
    },
  };
}

const offered = ({ id, definition: { name, description, variables } }: Agent): OfferedTool => ({
  name: prefix + id,
  title: name,
  description,
  inputSchema: {
    type: 'object',
    properties: { message: { type: 'string', description: 'What the agent is asked.' }, ...(variables ? { variables: within(variables) } : {}) },
    required: ['message', ...(variables && requires(variables) ? ['variables'] : [])],
  },
  isReadOnly: false,
});

/** The schema of the variables where it stands now: what it refers to within itself is found from the root. */
const within = (variables: JsonObject) => withRefs(variables, (ref) => (/^#(?:\/|$)/.test(ref) ? `#/properties/variables${ref.slice(1)}` : ref));

const requires = ({ required }: JsonObject) => Array.isArray(required) && required.length > 0;

/** @throws Fault `invalid` naming the argument */
function inputOf({ message, variables, ...others }: Readonly<Record<string, unknown>>): { readonly message: string; readonly variables?: JsonObject } {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new Fault('invalid', `${unknown.slice(0, 100)} is not known: the arguments are message and variables.`);
  if (typeof message !== 'string' || message === '' || message.length > longestMessage)
    throw new Fault('invalid', `message must be a string of 1 to ${longestMessage} characters.`);
  if (variables !== undefined && !isObject(variables)) throw new Fault('invalid', 'variables must be an object.');
  return { message, ...(variables === undefined ? {} : { variables: variables as JsonObject }) };
}

async function answered(
  agent: Agent,
  input: ReturnType<typeof inputOf>,
  { caller, requestId, address, signal, app, tags }: Context,
  deps: NativeAgentDeps,
): Promise<ToolAnswer> {
  const id = await begun({ caller, agent, input, files: [], signal, requestId, address, choices: { app, tags } }, deps);
  await executed({ runs: deps.runs, userId: caller.userId, id, agent, signal });
  return answerOf(await deps.runs.one(caller.userId, id));
}

function answerOf({ id, state, message, error, waitsFor }: ShownRun): ToolAnswer {
  if (state === 'completed') return { text: message ?? '', isError: false };
  if (state !== 'waiting') return { text: error ?? 'The run was cancelled.', isError: true };
  const what = waitsFor?.type === 'approval' ? `approval of a call of ${waitsFor.tool}` : 'answer to a question';
  return { text: `The run ${id} waits for its user's ${what}, at /server/mine/runs/${id}.`, isError: true };
}
