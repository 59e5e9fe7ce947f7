import type { GenerateCall } from '#core/call';
import type { FunctionTool, Part, ToolChoice, Turn } from '#core/conversation';
import type { GenerateEvent } from '#core/event';
import { own, rest, type Json, type JsonObject } from '#core/json';
import type { Fitted } from '../../shared/fitting.ts';
import { invalid } from '#core/fault';
import { bounded, isGiven } from '../../shared/read-fields.ts';
import { carriedAs, dialect, type ChatRequest } from './wire.ts';

/**
 * The older form of tools: `functions` and `function_call`, of which an answer calls at most one. They are tools of the call, noted as `.functions`, so that only
 * this wire is sent the older form. https://platform.openai.com/docs/api-reference/chat/create#chat-create-functions
 */
interface OlderFunctions {
  readonly tools: readonly FunctionTool[];
  readonly toolChoice?: ToolChoice;
}

/** @returns undefined where the request has none, or tools besides */
export function olderFunctionsOf({ functions, function_call: choice, tools }: ChatRequest): OlderFunctions | undefined {
  if (!functions || functions.length === 0 || (tools && tools.length > 0)) return undefined;
  const all = functions.map((one, at): FunctionTool => {
    const { name, description, parameters } = one;
    const field = `functions[${at}].parameters`;
    const kind = parameters?.['type'];
    if (isGiven(kind) && kind !== 'object') throw invalid(`${field}.type`, 'must be "object"');
    return {
      type: 'function',
      name,
      ...(isGiven(description) && { description }),
      ...(isGiven(parameters) && { parameters: bounded(parameters, field) }),
      ...carriedAs(rest(one, members)),
    };
  });
  return { tools: all, ...choiceOf(choice, all) };
}

const members = new Set(['name', 'description', 'parameters']);

function choiceOf(choice: ChatRequest['function_call'], functions: readonly FunctionTool[]): Pick<OlderFunctions, 'toolChoice'> {
  if (!isGiven(choice)) return {};
  if (choice === 'none' || choice === 'auto') return { toolChoice: { type: choice } };
  if (typeof choice === 'string') throw invalid('function_call', 'must be "none", "auto" or an object with the name of a function');
  if (!functions.some(({ name }) => name === choice.name)) throw invalid('function_call.name', 'must be the name of one of the functions');
  return { toolChoice: { type: 'tool', name: choice.name } };
}

export const hasOlderFunctions = ({ extra }: Pick<GenerateCall, 'extra'>): boolean => own(extra, dialect)['.functions'] === true;

/** `functions` and `function_call`, as the client wrote them. */
export function encodeFunctions({ tools, toolChoice }: Pick<GenerateCall, 'tools' | 'toolChoice'>): JsonObject {
  const functions = tools.flatMap((tool): readonly JsonObject[] => {
    if (tool.type !== 'function') return [];
    const { name, description, parameters, extra } = tool;
    return [{ ...own(extra, dialect), name, ...(description === undefined ? {} : { description }), ...(parameters === undefined ? {} : { parameters }) }];
  });
  if (!toolChoice) return { functions };
  return { functions, function_call: toolChoice.type === 'tool' ? { name: toolChoice.name } : toolChoice.type };
}

/** Does the call or its conversation have the older form? */
const isOlder = (call: GenerateCall): boolean => hasOlderFunctions(call) || call.turns.some(isOlderTurn);

/** A result, or a turn with a call, in the older form. */
export const isOlderTurn = ({ parts, extra }: Turn): boolean => own(extra, dialect)['.role'] === 'function' || parts.some(isOlderCall);

const isOlderCall = (part: Part): boolean => part.type === 'tool-call' && own(part.extra, dialect)['.function_call'] === true;

/** The call with tools and their results in place of functions, for a provider that does not know these; its answer has them in the older form again. */
export function withoutOlderFunctions(call: GenerateCall): Fitted | undefined {
  if (!isOlder(call)) return undefined;
  const { '.functions': isNoted, '.function_call': _, ...notes } = own(call.extra, dialect);
  const newer = { ...call, turns: call.turns.map(newerTurn), extra: { ...call.extra, [dialect]: notes } };
  return { call: newer, ...(isNoted ? { restore: (events) => events.map(asOlder) } : {}) };
}

function newerTurn(turn: Turn): Turn {
  if (!isOlderTurn(turn)) return turn;
  const { '.role': role, '.name': _, ...carried } = own(turn.extra, dialect);
  const kept: Record<string, Json> = role === undefined || role === 'function' ? carried : { ...carried, '.role': role };
  return { ...turn, parts: turn.parts.map(newerPart), extra: { ...turn.extra, [dialect]: kept } };
}

function newerPart(part: Part): Part {
  if (part.type !== 'tool-call') return part;
  const { '.function_call': _, '.unnamed': __, ...carried } = own(part.extra, dialect);
  return { ...part, extra: { ...part.extra, [dialect]: carried } };
}

const asOlder = (event: GenerateEvent): GenerateEvent =>
  event.type === 'tool-call' ? { ...event, extra: { ...event.extra, [dialect]: { ...own(event.extra, dialect), '.function_call': true } } } : event;
