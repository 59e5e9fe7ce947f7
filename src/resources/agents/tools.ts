import type { Caller } from '#core/context';
import { textTurn, wordsIn, type FunctionTool } from '#core/conversation';
import { Fault } from '#core/fault';
import { fold } from '#core/fold';
import { wholeAnswer, type Generate } from '#core/generate';
import type { JsonObject } from '#core/json';
import { placeOf, type SearchPassages } from '#core/passages';
import type { Run, ToolContext, ToolOutcome } from '#core/run';
import { requireScope } from '#core/scopes';
import type { AgentServer, AgentServerTools } from '#core/server-tools';
import { fewAtOnce } from '#kit/async/few-at-once';
import { textAsWritten } from '#kit/json/numbers';
import { citedPassage } from '../cited-passage.ts';
import type { KeepsTo } from '../keeps-to.ts';
import type { Plugins } from '../plugin-run.ts';
import type { AgentStore } from './store.ts';
import type { AgentTool, Approval } from './types.ts';
import { plainCall } from '#core/call';

export interface AgentToolsDeps {
  readonly agents: Pick<AgentStore, 'runnable'>;
  readonly servers: AgentServerTools;
  readonly plugins: Pick<Plugins, 'callable' | 'run'>;
  /** The dataset with an id. @throws Fault `not-found` for one that the caller may not read */
  readonly dataset: (caller: Caller, id: number) => Promise<{ readonly name: string; readonly fullName: string }>;
  readonly search: SearchPassages;
  readonly requests: {
    isReadOnly(request: JsonObject): boolean;
    call(
      request: JsonObject,
      making: { readonly values: JsonObject; readonly ownerId: number; readonly caller: Caller; readonly signal: AbortSignal },
    ): Promise<string>;
  };
  readonly keepsTo: KeepsTo;
  readonly generate: Generate;
  /** The model of agents and plugins that name none. */
  readonly defaultModel: () => string;
}

/** A tool as a run has it: what its model is shown, and what a call of it is. */
export interface RunTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  /** The name of its MCP server. */
  readonly server: string | null;
  /** Its name at the server; elsewhere as the model knows it. */
  readonly tool: string;
  readonly isReadOnly: boolean;
  readonly asks: Approval;
  readonly what:
    | { readonly type: 'mcp'; readonly server: number; readonly digest: string }
    | { readonly type: 'plugin'; readonly id: number; readonly name: string; readonly digest: string }
    | { readonly type: 'dataset'; readonly dataset: string }
    | { readonly type: 'http'; readonly request: JsonObject; readonly ownerId: number; readonly agentId: number }
    | { readonly type: 'agent'; readonly id: number };
}

/** What an agent's tools are found for. */
export interface ToolsWanted {
  readonly agentId: number;
  readonly tools: readonly AgentTool[];
  /** Of the agent; null: built in. */
  readonly ownerId: number | null;
  /** The version, and that of each agent that it works for, is the user's own, or the agent is built in. */
  readonly isTrusted: boolean;
  /** Whether it may have others work for it. */
  readonly hasAgents: boolean;
}

const questionOf: JsonObject = {
  type: 'object',
  properties: { question: { type: 'string', description: 'What to look for, as a question or as words.' } },
  required: ['question'],
};
const taskOf: JsonObject = {
  type: 'object',
  properties: { task: { type: 'string', description: 'What it is to do, with all that it has to know.' } },
  required: ['task'],
};

/** The scopes that a narrowed key needs one of, for each type of tool. */
const scopesOf: Readonly<Record<AgentTool['type'], readonly [string, ...string[]]>> = {
  mcp: ['mcp'],
  plugin: ['plugins'],
  dataset: ['datasets', 'query'],
  http: ['agent_builder'],
  agent: ['agent_builder'],
};

/** The tools that an agent has when a user runs it: those that the user may use. Others are named in `warnings`. */
export async function toolsFor(
  { agentId, tools, ownerId, isTrusted, hasAgents }: ToolsWanted,
  caller: Caller,
  deps: AgentToolsDeps,
  signal: AbortSignal,
): Promise<{ readonly tools: readonly RunTool[]; readonly warnings: readonly string[] }> {
  const usable = tools.filter(({ type }) => type !== 'agent' || hasAgents);
  // four at a time: an MCP server that does not answer delays only the tools that wait for its place
  const all = await fewAtOnce(usable, atOnce, async (tool) => {
    try {
      requireScope(caller, ...scopesOf[tool.type]);
      return await toolsOf(tool, { caller, agentId, ownerId: ownerId ?? 0, isTrusted, signal }, deps);
    } catch (error) {
      if (!(error instanceof Fault) || (error.code !== 'not-found' && error.code !== 'conflict' && error.code !== 'forbidden')) throw error;
      return `A tool of the type ${tool.type} is left out: ${error.message}`;
    }
  });
  const found = new Map<string, RunTool>();
  for (const one of all.flatMap((some) => (typeof some === 'string' ? [] : some))) if (!found.has(one.name)) found.set(one.name, one);
  return { tools: [...found.values()].slice(0, mostTools), warnings: all.filter((one) => typeof one === 'string') };
}

/** Tools of an agent that are found at once. */
const atOnce = 4;

/** Tools that a model is shown. */
const mostTools = 128;

interface Finding {
  readonly caller: Caller;
  readonly agentId: number;
  readonly ownerId: number;
  readonly isTrusted: boolean;
  readonly signal: AbortSignal;
}

async function toolsOf(tool: AgentTool, { caller, agentId, ownerId, isTrusted, signal }: Finding, deps: AgentToolsDeps): Promise<readonly RunTool[]> {
  // Nobody but the user says that others' agents may change things for the user, or tell others what they found: the answer to an approval does.
  const asks = (isReadOnly: boolean, tells: boolean): Approval => {
    const isHarmless = isReadOnly && (isTrusted || !tells);
    if (tool.approval && (isTrusted || isHarmless || tool.approval !== 'never')) return tool.approval;
    return isHarmless ? 'never' : 'first';
  };
  const named = (
    name: string,
    description: string,
    parameters: JsonObject,
    { isReadOnly, tells }: { readonly isReadOnly: boolean; readonly tells: boolean },
  ) => ({
    name,
    description: description.slice(0, 4000),
    parameters,
    server: null,
    tool: name,
    isReadOnly,
    asks: asks(isReadOnly, tells),
  });
  switch (tool.type) {
    case 'mcp': {
      await deps.servers.one(caller, tool.server);
      const all = await deps.servers.of(caller, [{ server: tool.server, ...(tool.tools ? { tools: tool.tools } : {}) }], signal);
      if (all.length === 0) refuseUnusable(await deps.servers.one(caller, tool.server), tool.server);
      return all.map(({ declared, server, serverName, name, digest, isReadOnly, asks: ruled, isApproved }) => {
        const own = asks(isReadOnly, true);
        const isKnown = isApproved || (isReadOnly && isTrusted); // what only reads needs no approval before its first call, as with servers
        return {
          name: declared.name,
          description: declared.description ?? '',
          parameters: declared.parameters ?? { type: 'object' },
          server: serverName,
          tool: name,
          isReadOnly,
          asks: stricter(ruled, own === 'first' && isKnown ? 'never' : own),
          what: { type: 'mcp', server, digest },
        };
      });
    }
    case 'plugin': {
      const { id, name, description, fields, isReadOnly, tells, digest } = await deps.plugins.callable(caller, tool.plugin);
      return [{ ...named(`plugin__${name}`.slice(0, 64), description, fields, { isReadOnly, tells }), what: { type: 'plugin', id, name, digest } }];
    }
    case 'dataset': {
      if (tool.dataset === 'all')
        return [{ ...named('search_datasets', "Searches all of the user's datasets.", questionOf, harmless), what: { type: 'dataset', dataset: 'all' } }];
      const { name, fullName } = await deps.dataset(caller, tool.dataset);
      const shown = `search_${name.replace(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, 50);
      const described = `Searches the dataset ${name}: finds passages by words and by meaning.`;
      return [{ ...named(`${shown}_${tool.dataset}`, described, questionOf, harmless), what: { type: 'dataset', dataset: fullName } }];
    }
    case 'http': {
      const { name, description, parameters, request } = tool;
      const isReadOnly = deps.requests.isReadOnly(request);
      return [{ ...named(name, description, parameters, { isReadOnly, tells: true }), what: { type: 'http', request, ownerId, agentId } }];
    }
    case 'agent': {
      const { id, definition } = await deps.agents.runnable(caller, tool.agent);
      const described = `${definition.name}. ${definition.description}`;
      return [{ ...named(`agent__${id}`, described, taskOf, harmless), what: { type: 'agent', id } }];
    }
    default:
      return tool satisfies never;
  }
}

/** @throws Fault `conflict` for a server that has no tools until its user has signed in, or that cannot be used */
function refuseUnusable({ name, wantsSignIn, problem }: AgentServer, id: number): void {
  if (wantsSignIn) throw new Fault('conflict', `The MCP server ${name} wants you to sign in: POST /server/mine/mcp-servers/${id}/oauth.`);
  if (problem !== null) throw new Fault('conflict', `The MCP server ${name} cannot be used: ${problem}`);
}

/** An agent asks for what its own tools do. */
const harmless = { isReadOnly: true, tells: false } as const;

const strictness: readonly Approval[] = ['never', 'first', 'always'];
const stricter = (one: Approval, other: Approval): Approval => (strictness.indexOf(one) > strictness.indexOf(other) ? one : other);

/** As a model is shown it. */
export const declared = ({ name, description, parameters }: RunTool): FunctionTool => ({
  type: 'function',
  name,
  ...(description === '' ? {} : { description }),
  parameters,
});

/** A call of a tool that is no agent. Whether the user may make it is checked by what it calls, at this moment. @throws Fault, which becomes a text for the model */
export async function called(
  { what, tool }: RunTool,
  args: JsonObject,
  { caller, context, ask, run }: ToolContext & { readonly run: Pick<Run, 'signal'> },
  deps: AgentToolsDeps,
): Promise<ToolOutcome> {
  const { signal } = run;
  requireScope(caller, ...scopesOf[what.type]);
  switch (what.type) {
    case 'mcp':
      return deps.servers.call(caller, { server: what.server, tool, digest: what.digest, json: textAsWritten(args) }, signal, ask);
    case 'plugin': {
      const made = await deps.plugins.run({ caller, name: what.name, id: what.id, digest: what.digest, values: args, files: [], signal });
      if (!made) throw new Fault('not-found', 'There is no such plugin.');
      const message = made.type === 'question' ? ((await made.whole?.()) ?? made.message) : what.name;
      const call = plainCall({
        model: deps.defaultModel(),
        turns: [textTurn('user', message)],
        output: (made.type === 'question' ? made.output : undefined) ?? { type: 'text' as const },
      });
      const { candidates } = fold(await wholeAnswer(made.type === 'question' ? deps.generate : made.generate, call, context));
      return { text: wordsIn(candidates[0]?.parts ?? []), isError: false };
    }
    case 'dataset':
      return passagesFound(what.dataset, args, { caller, context, signal }, deps);
    case 'http': {
      const ownerId = what.ownerId || caller.userId;
      if (ownerId !== caller.userId) await deps.agents.runnable(caller, what.agentId); // whose secrets it uses may have been taken back
      return { text: await deps.requests.call(what.request, { values: args, ownerId, caller, signal }), isError: false };
    }
    case 'agent':
      throw new TypeError('An agent works in a part of the run.');
    default:
      return what satisfies never;
  }
}

const mostPassages = 10;

async function passagesFound(
  dataset: string,
  { question }: JsonObject,
  { caller, context, signal }: Pick<ToolContext, 'caller' | 'context'> & { readonly signal: AbortSignal },
  { search }: AgentToolsDeps,
): Promise<ToolOutcome> {
  const asked = typeof question === 'string' ? question.slice(0, 2000).toWellFormed() : '';
  if (asked.trim() === '') return { text: 'question is required: a text.', isError: true };
  const { passages } = await search({
    caller,
    datasets: dataset === 'all' ? 'all' : [dataset],
    question: asked,
    limit: mostPassages,
    requestId: context.requestId,
    step: context.step,
    progress: context.progress,
    permits: context.permits,
    app: context.app,
    tags: context.tags,
    signal,
  });
  const kept = passages.filter(({ cut }) => cut === undefined);
  if (kept.length === 0) return { text: 'Nothing was found.', isError: false };
  const text = kept.map((one) => `${placeOf(one)}\n${one.text}`).join('\n\n');
  return { text, isError: false, citations: kept.map(citedPassage) };
}
