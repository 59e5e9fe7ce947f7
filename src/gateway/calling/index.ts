import { ignoringTools } from '#core/ignoring';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type { ForeignTool, Turn, Resumed, WantedTools } from '#core/conversation';
import type { Events, GenerateEvent, Usage } from '#core/event';
import { where, type Generate } from '#core/generate';
import { inSteps } from '#core/permits';
import type { ServerTools } from '#core/server-tools';
import { stepOf, steps } from '#core/steps';
import { sumOfKnown } from '#core/usage';
import { callOf, made, mostCalls, named, newRoom, noCallsLeft, resultOf, resultOfCall, type CallingDeps, type Room } from './calls.ts';
import { CallingRound } from './round.ts';
import { endOfRounds, isCut, turnOf } from '../rounds.ts';
import { shownAnswer } from './shown.ts';

type Wanting = ForeignTool & { readonly wanted?: WantedTools };

/**
 * Tools of MCP servers: declares them to the model, calls them and calls the model again, until it answers. A round of which one call needs an approval, or is
 * for the client, is handed to the client whole: none of its calls is made. Each round is a step of its own.
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
  const room = newRoom();
  const since: Turn[] = wanted.resumed ? [...wanted.resumed.turns, await resumedTurn(tools, wanted.resumed, room, context)] : [];
  let toolChoice = wanted.resumed ? undefined : choice;
  let usage: Usage | undefined;
  let callsLeft = mostCalls;
  for (let at = 0; ; at++) {
    const round = new CallingRound(at === 0, context);
    const request: GenerateCall = { ...bare, tools: whole, ...(toolChoice ? { toolChoice } : {}), turns: [...call.turns, ...since] };
    for await (const events of inner(request, { ...context, step: stepOf(context.step, 'tools', at) })) {
      const out: GenerateEvent[] = [];
      for (const event of events) out.push(...round.take(event));
      if (out.length > 0) yield out;
    }
    usage = sumOfKnown(usage, round.usage);
    const own = round.calls.map(({ id, name, json }) => ({ id, name, json, of: byName.get(name) }));
    const turn = turnOf(round.events);
    const waits = own.some(({ name, of }) => of?.needsApproval ?? clients.has(name));
    if (own.length === 0 || isCut(round.finished) || waits || at + 1 === steps.tools.most) {
      const calls = own.flatMap(({ of, ...one }) => (of ? [callOf(one, of)] : []));
      const isHanded = waits && !isCut(round.finished);
      if (isHanded && calls.length > 0) context.progress.waiting = { turns: [...since, turn], calls };
      if (own.length > 0 && !isHanded) (context.progress.warnings ??= []).push('enabled_mcp_tools: the answer ended before all calls of the model were made');
      const held = isHanded ? round.held : round.heldOf(clients);
      yield [...held, ...endOfRounds({ finished: round.finished, usage, hasCalls: held.length > 0 })];
      return;
    }
    const wantedCalls = own.flatMap(({ of, ...one }) => (of ? [callOf(one, of)] : []));
    const allowed = wantedCalls.slice(0, callsLeft);
    callsLeft -= allowed.length;
    const results = (await made(tools, allowed, room, context)).map(resultOfCall);
    const left = wantedCalls.slice(allowed.length).map(({ id }) => resultOf(id, noCallsLeft, true));
    const none = own.filter(({ of }) => !of).map(({ id }) => resultOf(id, 'There is no such tool.', true));
    since.push(turn, { role: 'user', parts: [...results, ...left, ...none] });
    toolChoice = undefined; // the client's forced choice has been met
    context.signal.throwIfAborted();
  }
}

/** Makes the approved ones of the calls that waited. */
async function resumedTurn(tools: ServerTools, { turns, calls, approved, id: waited }: Resumed, room: Room, context: Context): Promise<Turn> {
  const wanted = calls.filter(({ id }) => approved.includes(id)).map((call) => ({ ...call, approval: `${waited}.${call.id}` }));
  const results = (await made(tools, wanted, room, context)).map(resultOfCall);
  const asked = turns.at(-1)?.parts.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])) ?? [];
  const done = new Set(wanted.map(({ id }) => id));
  const rest = asked.filter((id) => !done.has(id)).map((id) => resultOf(id, 'The user did not approve this call.', true));
  return { role: 'user', parts: [...results, ...rest] };
}
