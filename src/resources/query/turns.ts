import type { Role, Tool, ToolChoice, Turn } from '#core/conversation';
import { invalid } from '#core/fault';
import type { QueryFields } from './fields.ts';

/** Speakers, as clients name them. */
const roles: Readonly<Record<string, Role>> = {
  me: 'user',
  user: 'user',
  human: 'user',
  gpt: 'model',
  ai: 'model',
  assistant: 'model',
  model: 'model',
  system: 'system',
};

/** The turns of a message. Blank turns of the model are left out: clients send them where the model called a tool. @throws Fault `invalid` */
export function turnsOf(message: QueryFields['message']): readonly Turn[] {
  const items = typeof message === 'string' ? [{ user: 'me', message }] : message;
  const turns = items.flatMap(({ user, message: text }, at): readonly Turn[] => {
    const name = user.toLowerCase();
    const role = Object.hasOwn(roles, name) ? roles[name] : undefined;
    if (!role) throw invalid(`message[${at}].user`, 'must be "me" or "gpt"');
    if (text.trim() === '') return [];
    return [{ role, parts: [{ type: 'text', text: role === 'model' ? text.trim() : text }] }];
  });
  if (!turns.some(({ role }) => role === 'user')) throw invalid('message', 'must have a question in it');
  return turns;
}

export const textOfTurn = ({ parts }: Turn): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n');

export const questionOf = (turns: readonly Turn[]): string => textOfTurn(turns.findLast(({ role }) => role === 'user')!);

/** @throws Fault `invalid` for two tools of one name */
export function toolsOf(given: QueryFields['tools']): readonly Tool[] {
  const names = new Set<string>();
  return (given ?? []).map(({ function: { name, description, parameters, strict } }, at) => {
    if (names.has(name)) throw invalid(`tools[${at}].function.name`, 'is that of another tool');
    names.add(name);
    return {
      type: 'function',
      name,
      ...(typeof description === 'string' ? { description } : {}),
      ...(parameters ? { parameters } : {}),
      ...(typeof strict === 'boolean' ? { strict } : {}),
    };
  });
}

/** @param hasServers tools of MCP servers, whose names are not known yet, are there too @throws Fault `invalid` for a tool that is not there */
export function toolChoiceOf(
  given: QueryFields['tool_choice'],
  tools: readonly Tool[],
  { hasServers }: { readonly hasServers: boolean },
): ToolChoice | undefined {
  if (given === undefined || given === null) return undefined;
  const hasTools = tools.length > 0 || hasServers;
  if (typeof given === 'string') {
    if (given === 'required' && !hasTools) throw invalid('tool_choice', 'is only allowed with tools');
    return hasTools ? { type: given } : undefined;
  }
  const { name } = given.function;
  const isKnown = hasServers || tools.some((tool) => tool.type === 'function' && tool.name === name);
  if (!isKnown) throw invalid('tool_choice', 'names a tool that is not in tools');
  return { type: 'tool', name };
}
