import { ignoringTools } from '#core/ignoring';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type { ForeignTool, Resumed, ToolChoice, ToolResultPart, Turn, WantedTools } from '#core/conversation';
import { isCut, type Events, type GenerateEvent, type Usage } from '#core/event';
import { Fault } from '#core/fault';
import { where, type Generate } from '#core/generate';
import { inSteps } from '#core/permits';
import type { ServerTools } from '#core/server-tools';
import { stepOf, steps } from '#core/steps';
import { sumOfKnown } from '#core/usage';
import { callOf, made, mostCalls, named, resultBudget, noCallsLeft, resultOf, resultOfCall, unknownOf, type CallingDeps, type ResultBudget } from './calls.ts';
import { CallingRound, type RoundCall } from './round.ts';
import { endOfRounds, laterChoice, turnOf } from '../rounds.ts';
import { shownAnswer } from './shown.ts';

type Wanting = ForeignTool & { readonly wanted?: WantedTools };

/**
 * Tools of MCP servers: declares them to the model, calls them and calls the model again, until it answers. Of a round of which some calls need an approval
 * the others are made, and these are handed to the client; a round with a call that is for the client is handed to it whole. Each round is a step of its own.
 */
export function calling(deps: CallingDeps): Generate {
  return where(
    ({ tools: declared }) => declared.find((tool): tool is Wanting => tool.type === 'foreign' && (tool.wanted ?? tool.server) !== undefined),
    ({ wanted }, call, context) => inSteps(context.permits, wanted ? answered(deps, { call, wanted }, context) : shownAnswer(deps, call, context)),
    deps.inner,
  );
}

async function* answered(
  { tools, inner, admits }: CallingDeps,
  { call, wanted }: { readonly call: GenerateCall; readonly wanted: WantedTools },
  context: Context,
): AsyncGenerator<Events> {
  const { tools: declared, toolChoice: choice, ...bare } = call;
  const others = declared.filter((tool) => !(tool.type === 'foreign' && tool.wanted));
  const { tools: offered, unknown } = await tools.offered(context.caller, wanted.tools, context.signal);
  ignoringTools(unknown, context);
  const clients = new Set(others.flatMap((tool) => (tool.type === 'foreign' ? [] : [tool.name])));
  const byName = named(offered, clients);
  const whole = [...others, ...[...byName.values()].map(({ declared: one }) => one)];
  if (wanted.resumed) await admits({ ...bare, tools: whole }, context);
  const room = resultBudget();
  const since: Turn[] = wanted.resumed ? [...wanted.resumed.turns, await resumedTurn(tools, wanted.resumed, room, context)] : [];
  const first = wanted.resumed ? undefined : choiceAmong(whole, choice);
  let chosen = wanted.resumed ? laterChoice(choice) : first ? { toolChoice: first } : {};
  let usage: Usage | undefined;
  let callsLeft = mostCalls;
  for (let at = 0; ; at++) {
    const round = new CallingRound(at === 0, context);
    const request: GenerateCall = { ...bare, tools: whole, ...chosen, turns: [...call.turns, ...since] };
    for await (const events of inner(request, { ...context, step: stepOf(context.step, 'tools', at) })) {
      const out: GenerateEvent[] = [];
      for (const event of events) out.push(...round.take(event));
      if (out.length > 0) yield out;
    }
    usage = sumOfKnown(usage, round.usage);
    const own = round.calls(byName);
    const turn = turnOf(round.events);
    const isClients = own.some(({ name, of }) => !of && clients.has(name));
    const waits = isClients || own.some(({ of }) => of?.needsApproval);
    const isEnd = own.length === 0 || isCut(round.finished?.reason) || (at + 1 === steps.tools.most && !waits);
    const waiting = own.filter(({ of }) => !isEnd && (isClients || of?.needsApproval));
    const { results, count } = await madeNow(tools, isEnd ? [] : own.filter((one) => !waiting.includes(one)), { room, most: callsLeft }, context);
    callsLeft -= count;
    if (isEnd || waits) {
      const calls = callsOf(waiting);
      if (calls.length > 0) context.progress.waiting = { turns: [...since, turn], calls, ...(results.length > 0 ? { results } : {}) };
      if (own.length > 0 && isEnd) (context.progress.warnings ??= []).push('enabled_mcp_tools: the answer ended before all calls of the model were made');
      const held = isEnd ? round.heldOf(clients) : round.heldOf(new Set(waiting.map(({ name }) => name)));
      yield [...held, ...endOfRounds({ finished: round.finished, usage, hasCalls: held.length > 0 })];
      return;
    }
    since.push(turn, { role: 'user', parts: results });
    chosen = laterChoice(choice);
    context.signal.throwIfAborted();
  }
}

/** The choice of the client, where there are tools. @throws Fault `invalid` for one that asks for a tool which is not there */
function choiceAmong(tools: GenerateCall['tools'], choice: ToolChoice | undefined): ToolChoice | undefined {
  if (choice?.type === 'tool' && !tools.some((tool) => tool.type !== 'foreign' && tool.name === choice.name))
    throw new Fault('invalid', 'tool_choice names a tool that is not there.', { field: 'tool_choice' });
  if (tools.length > 0) return choice;
  if (choice?.type === 'required') throw new Fault('invalid', 'tool_choice is only allowed with tools.', { field: 'tool_choice' });
  return undefined;
}

const callsOf = (own: readonly RoundCall[]) => own.flatMap(({ of, ...one }) => (of ? [callOf(one, of)] : []));

/** Makes the calls of tools of servers, as far as there are calls left, and answers for the others. */
async function madeNow(
  tools: ServerTools,
  own: readonly RoundCall[],
  { room, most }: { readonly room: ResultBudget; readonly most: number },
  context: Context,
): Promise<{ readonly results: readonly ToolResultPart[]; readonly count: number }> {
  const calls = callsOf(own);
  const allowed = calls.slice(0, most);
  const results = (await made(tools, allowed, room, context)).map(resultOfCall);
  const left = calls.slice(allowed.length).map(({ id }) => resultOf(id, noCallsLeft, true));
  return { results: [...results, ...left, ...unknownOf(own)], count: allowed.length };
}

/** Makes the approved ones of the calls that waited. */
async function resumedTurn(
  tools: ServerTools,
  { turns, calls, results: before = [], approved, id: waited }: Resumed,
  room: ResultBudget,
  context: Context,
): Promise<Turn> {
  const wanted = calls.filter(({ id }) => approved.includes(id)).map((call) => ({ ...call, approval: `${waited}.${call.id}` }));
  const results = (await made(tools, wanted, room, context)).map(resultOfCall);
  const asked = turns.at(-1)?.parts.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])) ?? [];
  const done = new Set([...wanted, ...before].map(({ id }) => id));
  const rest = asked.filter((id) => !done.has(id)).map((id) => resultOf(id, 'The user did not approve this call.', true));
  return { role: 'user', parts: [...before, ...results, ...rest] };
}
