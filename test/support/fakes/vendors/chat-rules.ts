/** Rules that several vendors of the chat wire have, in their own words. */
import { first, has, list, named, rule, type Any, type Refusal, type Rule } from './vendor.ts';

/** Each call is answered right after it, and nothing else is an answer. */
export const answeredCalls = (unanswered: (at: number, ids: readonly string[]) => Refusal, unasked: (at: number) => Refusal): Rule =>
  rule('each call is answered by a tool message right after it', 'BerriAI/litellm#32536', ({ body }) => {
    const messages = list(body.messages);
    let open: string[] = [];
    let from = -1;
    for (const [at, { role, tool_call_id: id, tool_calls: calls }] of messages.entries()) {
      if (role === 'tool') {
        if (from < 0 || !open.includes(id)) return unasked(at);
        open = open.filter((one) => one !== id);
        continue;
      }
      if (open.length > 0) return unanswered(from, open);
      open = list(calls).map((call) => call.id);
      from = open.length > 0 ? at : -1;
    }
    return open.length > 0 ? unanswered(from, open) : undefined;
  });

export const jsonByName = (says: Refusal): Rule =>
  rule('json_object needs the word json in the messages', 'ultimatejimmy/xray.koplugin#33', ({ body }) =>
    body.response_format?.type === 'json_object' && !/json/i.test(JSON.stringify(list(body.messages).map(({ content }) => content))) ? says : undefined,
  );

/** The first message of a role that is not one of these. */
export const roles = (known: readonly string[], source: string, says: (role: string, at: number) => Refusal): Rule =>
  rule(`the roles are ${named(known)}`, source, ({ body }) => first<Any, Refusal>(body.messages, ({ role }, at) => !known.includes(role) && says(role, at)));

/** The first tool of a type that is not `function`. */
export const functionsOnly = (source: string, says: (type: string, at: number) => Refusal): Rule =>
  rule('tools are functions', source, ({ body }) => first<Any, Refusal>(body.tools, ({ type }, at) => type !== 'function' && says(type, at)));

/** A choice is a word or names a function. */
export const plainChoice = (source: string, says: Refusal): Rule =>
  rule('tool_choice is none, auto, required or a function', source, ({ body: { tool_choice: choice } }) =>
    has(choice) && typeof choice !== 'string' && choice.type !== 'function' ? says : undefined,
  );

/** Names of the members that are not among these. */
export const others = (value: Any, known: readonly string[]): string[] =>
  Object.keys(value ?? {}).filter((name) => value[name] !== undefined && !known.includes(name));

/** Every tool name on the chat wire, with its place. */
export function* toolNames(body: Any): Generator<{ readonly name: string; readonly at: string }> {
  for (const [at, tool] of list(body.tools).entries()) {
    const kind = tool.type === 'custom' ? 'custom' : 'function';
    yield { name: tool[kind]?.name, at: `tools[${at}].${kind}.name` };
  }
  for (const [at, { tool_calls: calls }] of list(body.messages).entries())
    for (const [place, call] of list(calls).entries()) {
      const kind = call.type === 'custom' ? 'custom' : 'function';
      yield { name: call[kind]?.name, at: `messages[${at}].tool_calls[${place}].${kind}.name` };
    }
}
