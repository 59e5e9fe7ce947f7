import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type {
  ApprovedCall,
  ForeignTool,
  ServerStep,
  ServerToolCall,
  Tool,
  ToolChoice,
  ToolResultPart,
  Turn,
  UnnamedTool,
  WantedServer,
} from '#core/conversation';
import { isCut, type Events, type GenerateEvent, type Usage } from '#core/event';
import { Fault } from '#core/fault';
import { isObject, own as ownMembers, textOf } from '#core/json';
import type { CalledTool, NamedServer, ServerTool, ServerTools } from '#core/server-tools';
import { stepOf, steps } from '#core/steps';
import { sumOfKnown } from '#core/usage';
import { callOf, made, mostCalls, named, resultBudget, noCallsLeft, resultOf, resultOfCall, unknownOf, type CallingDeps, type ResultBudget } from './calls.ts';
import { CallingRound } from './round.ts';
import { callsAllowed, endOfRounds, laterChoice, turnOf } from '../rounds.ts';

/** A server that the client named, and the gateway calls. */
interface Named extends NamedServer {
  readonly wanted: WantedServer;
}

/**
 * Tools of MCP servers that the client names beside its own, with all that is done shown to it: the lists of the servers, each call with its result, and calls that
 * wait for its approval. Calls that need none are made though others wait, or are for the client. Each round is a step of its own.
 */
export async function* shownAnswer({ tools, inner, admits }: CallingDeps, call: GenerateCall, context: Context): AsyncGenerator<Events> {
  const servers = await serversOf(tools, call.tools, context);
  if (servers.size === 0) {
    yield* inner(call, context);
    return;
  }
  const room = resultBudget();
  const all = [...servers.values()];
  const clients = call.tools.filter((tool) => tool.type !== 'foreign' || !servers.has(tool));
  const names = new Set(clients.flatMap((tool) => (tool.type === 'foreign' ? [] : [tool.name])));
  const byName = named(all.flatMap((server) => server.tools), names); // prettier-ignore
  const labels = new Map(all.flatMap(({ wanted, tools: its }) => its.map((tool) => [tool, wanted.label] as const)));
  if (call.turns.some(({ parts }) => parts.some((part) => part.type === 'tool-result' && part.approved))) await admits(call, context);
  const { turns, done } = await approvedTurns(call.turns, all, { tools, room }, context);
  let ahead: readonly GenerateEvent[] = [...all.flatMap(listedBy), ...done.map((step) => shown(step))];
  const whole = [...clients, ...[...byName.values()].map(({ declared }) => declared)];
  const since: Turn[] = [];
  const { toolChoice: choice, ...bare } = call;
  const wanted = choice && chosenOf(choice, all, byName);
  let chosen: Partial<GenerateCall> = { ...(wanted ? { toolChoice: only(wanted) } : {}), ...withoutServers(call) };
  let usage: Usage | undefined;
  const most = call.mostToolCalls;
  let callsLeft = Math.min(mostCalls, most ?? mostCalls);
  for (let at = 0; ; at++) {
    const round = new CallingRound(at === 0, context);
    const asking: GenerateCall = { ...bare, tools: whole, ...chosen, turns: [...turns, ...since] };
    const request: GenerateCall = { ...asking, ...callsAllowed(asking, most === undefined ? undefined : callsLeft) };
    for await (const events of inner(request, { ...context, step: stepOf(context.step, 'tools', at) })) {
      const out = events.flatMap((event) => round.take(event));
      if (out.length === 0) continue;
      yield at === 0 ? behindStart(out, ahead) : out;
      if (out.some(({ type }) => type === 'started')) ahead = [];
    }
    usage = sumOfKnown(usage, round.usage);
    if (most !== undefined) callsLeft = Math.max(0, callsLeft - providersCalls(round.events));
    const own = round.calls(byName);
    const isLast = own.length === 0 || isCut(round.finished?.reason) || at + 1 === steps.tools.most;
    const labelled = own.flatMap(({ of, ...one }) => (of ? [{ of, call: callOf(one, of), label: labels.get(of)! }] : []));
    const asked = isLast ? [] : labelled.filter(({ of }) => of.needsApproval);
    const ours = isLast ? [] : labelled.filter(({ of }) => !of.needsApproval);
    const isClients = own.some(({ name }) => names.has(name));
    const allowed = ours.slice(0, callsLeft);
    callsLeft -= allowed.length;
    if (allowed.length > 0) yield allowed.map((one) => shown(calledStep(at, one, { text: '', isError: false }), true));
    const results = await made(tools, allowed.map((one) => one.call), room, context); // prettier-ignore
    if (allowed.length + asked.length > 0)
      yield [...allowed.map((one, index) => shown(calledStep(at, one, results[index]!))), ...asked.map((one) => shown(askedStep(at, one)))];
    if (isLast || asked.length > 0 || isClients) {
      if (isLast && own.length > 0 && !isClients) (context.progress.warnings ??= []).push('tools: the answer ended before all calls of the model were made');
      const held = round.heldOf(names);
      yield [...held, ...endOfRounds({ finished: round.finished, usage, hasCalls: held.length > 0 })];
      return;
    }
    const left = ours.slice(allowed.length).map(({ call: { id } }) => resultOf(id, noCallsLeft, true));
    since.push(turnOf(round.events), { role: 'user', parts: [...results.map(resultOfCall), ...left, ...unknownOf(own)] });
    chosen = later(call, wanted);
    context.signal.throwIfAborted();
  }
}

/** The calls of its own tools that a provider has made, and the searches that were made for it. */
const providersCalls = (events: Events): number =>
  events.filter((event) => {
    if (event.type !== 'part' || event.progress) return false;
    if (event.part.type === 'search') return event.part.state !== 'searching';
    return event.part.type === 'foreign' && (event.part.search !== undefined || textOf(event.part.value['type']).endsWith('_call'));
  }).length;

/** Servers of one request. */
const mostServers = 16;

/** The servers that the gateway calls, by the tools that stand for them. */
async function serversOf(tools: ServerTools, declared: readonly Tool[], { caller, signal }: Context): Promise<ReadonlyMap<Tool, Named>> {
  const found = new Map<Tool, Named>();
  const labels = new Set<string>();
  for (const tool of declared.filter((one): one is ForeignTool => one.type === 'foreign')) {
    if (tool.server) {
      const { field, label } = tool.server;
      if (labels.has(label)) throw new Fault('invalid', `${field}.server_label is that of another tool.`, { field: `${field}.server_label` });
      if (labels.size === mostServers) throw new Fault('invalid', `${field}: at most ${mostServers} servers may be named.`, { field });
      labels.add(label);
    }
    const server = tool.server && (await tools.ofServer(caller, tool.server, signal));
    if (tool.server && server) found.set(tool, { ...server, wanted: tool.server });
  }
  return found;
}

/** The choice, with the names that the model sees in place of the servers. @throws Fault `invalid` for a tool that its server does not have */
function chosenOf(choice: ToolChoice, servers: readonly Named[], byName: ReadonlyMap<string, ServerTool>): ToolChoice {
  if (choice.type !== 'allowed') return choice;
  const { unnamed: all = [], ...others } = choice;
  const unnamed: UnnamedTool[] = [];
  const names = [...choice.names];
  for (const one of all) {
    const found = servers.find(({ wanted }) => wanted.label === one.server?.label);
    if (!found) {
      unnamed.push(one);
      continue;
    }
    const tool = one.server?.tool;
    const meant = found.tools.filter(({ name, declared }) => (tool === undefined || tool === name) && byName.has(declared.name));
    if (meant.length === 0 && found.error !== undefined && choice.mode === 'required')
      throw new Fault('upstream-failed', `tool_choice wants the MCP server ${found.wanted.label}, which gave no tools: ${found.error}`);
    if (tool !== undefined && meant.length === 0)
      throw new Fault('invalid', 'tool_choice names a tool that its MCP server does not have here.', { field: 'tool_choice' });
    names.push(...meant.map(({ declared }) => declared.name));
  }
  if (names.length + unnamed.length === 0 && choice.mode === 'required')
    throw new Fault('invalid', 'tool_choice names an MCP server that has no tools here.', { field: 'tool_choice' });
  return { ...others, names: [...new Set(names)], ...(unnamed.length > 0 ? { unnamed } : {}) };
}

function only(choice: ToolChoice): ToolChoice {
  if (choice.type !== 'allowed' || choice.mode !== 'required' || choice.names.length !== 1 || choice.unnamed) return choice;
  return { type: 'tool', name: choice.names[0]! };
}

/** Names tools of namespaces, as the client wrote it: there is no other form of it. */
const asWritten = '.tool_choice';

/** The call without a choice as the client wrote it that has servers in it: the provider is sent their tools, and does not know them. */
function withoutServers({ dialect = '', extra }: GenerateCall): Partial<GenerateCall> {
  const { [asWritten]: written, ...others } = ownMembers(extra, dialect);
  const tools = isObject(written) && Array.isArray(written['tools']) ? written['tools'] : [];
  return tools.some((tool) => isObject(tool) && tool['type'] === 'mcp') ? { extra: { ...extra, [dialect]: others } } : {};
}

/** The choice of the rounds after the first: one that only the provider knows has been met, too. */
function later({ dialect = '', extra }: GenerateCall, wanted: ToolChoice | undefined): Partial<GenerateCall> {
  const { tool_choice: _, [asWritten]: written, ...others } = ownMembers(extra, dialect);
  return { ...(written === undefined ? laterChoice(wanted) : {}), extra: { ...extra, [dialect]: others } };
}

/** The lists come before what the model says. */
function behindStart(events: Events, ahead: readonly GenerateEvent[]): Events {
  const at = events.findIndex(({ type }) => type === 'started');
  return at < 0 ? events : [...events.slice(0, at + 1), ...ahead, ...events.slice(at + 1)];
}

const shown = (step: ServerStep, isBegun = false): GenerateEvent => ({
  type: 'part',
  candidate: 0,
  part: { type: 'foreign', dialect: 'mcp', value: {}, step },
  ...(isBegun ? { progress: true } : {}),
});

function listedBy({ wanted: { label, isListed }, tools, error }: Named): readonly GenerateEvent[] {
  if (isListed) return [];
  const all = tools.map(({ declared, name, isReadOnly }) => ({ ...declared, name, isReadOnly }));
  return [shown({ type: 'listed', label, tools: all, ...(error === undefined ? {} : { error }) })];
}

interface Labelled {
  readonly label: string;
  readonly of: ServerTool;
  readonly call: ServerToolCall;
}

/** Models may give the calls of two rounds one id. */
const idIn = (at: number, { call: { id } }: Labelled) => `${at}.${id}`;

const calledStep = (at: number, one: Labelled, { text, isError }: Pick<CalledTool, 'text' | 'isError'>): ServerStep => ({
  type: 'called',
  id: idIn(at, one),
  label: one.label,
  tool: one.of.name,
  json: one.call.json,
  text,
  isError,
});

const askedStep = (at: number, one: Labelled): ServerStep => ({
  type: 'asked',
  id: idIn(at, one),
  label: one.label,
  tool: one.of.name,
  json: one.call.json,
  digest: one.of.digest,
});

/** The conversation with the results of the calls that were approved in it. */
async function approvedTurns(
  turns: readonly Turn[],
  servers: readonly Named[],
  { tools, room }: { readonly tools: ServerTools; readonly room: ResultBudget },
  context: Context,
): Promise<{ readonly turns: readonly Turn[]; readonly done: readonly ServerStep[] }> {
  const done: ServerStep[] = [];
  const results = new Map<ToolResultPart, ToolResultPart>();
  const once = new Map<string, Pick<CalledTool, 'text' | 'isError'>>();
  for (const part of turns.flatMap(({ parts }) => parts)) {
    if (part.type !== 'tool-result' || !part.approved) continue;
    const { id, label, tool, json } = part.approved;
    const before = once.get(id); // what was approved once is called once
    const result =
      before ?? (once.size < mostCalls ? await approvedResult(part.approved, servers, { tools, room }, context) : { text: noCallsLeft, isError: true });
    const { text, isError } = result;
    if (!before) done.push({ type: 'called', id, label, tool, json, text, isError, approval: id });
    once.set(id, result);
    results.set(part, resultOf(part.id, text, isError));
  }
  if (done.length === 0) return { turns, done };
  const replaced = turns.map((turn) => ({ ...turn, parts: turn.parts.map((part) => (part.type === 'tool-result' ? (results.get(part) ?? part) : part)) }));
  return { turns: replaced, done };
}

async function approvedResult(
  { id, label, tool: name, json, digest }: ApprovedCall,
  servers: readonly Named[],
  { tools, room }: { readonly tools: ServerTools; readonly room: ResultBudget },
  context: Context,
): Promise<Pick<CalledTool, 'text' | 'isError'>> {
  const tool = servers.find(({ wanted }) => wanted.label === label)?.tools.find((one) => one.name === name);
  if (!tool) return { text: `There is no tool ${name} any more.`, isError: true };
  if (!tool.digest.startsWith(digest)) return { text: `The tool ${name} has changed since it was approved.`, isError: true };
  const [result] = await made(tools, [{ ...callOf({ id, name: tool.declared.name, json }, tool), approval: id }], room, context);
  return result!;
}
