import { where, type Generate } from '#core/generate';
import { isConversation, type Call } from '#core/routed-call';
import type { ServerTools } from '#core/server-tools';

/** Refuses a call of which the provider would connect to an MCP server that the caller may not use. @throws Fault `forbidden` or `invalid` naming the field */
export function permitted({ permits }: Pick<ServerTools, 'permits'>, inner: Generate<Call>): Generate<Call> {
  return where(
    (call: Call) => (isConversation(call) ? call.otherServers : undefined),
    (servers, call, context) => {
      permits(context.caller, servers);
      return inner(call, context);
    },
    inner,
  );
}
