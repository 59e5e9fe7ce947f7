import type { OtherServer } from '#core/call';
import { isObject } from '#core/json';

/** An MCP server that the provider may connect to. @param member holds its address; one without is known to the provider alone */
export function otherServer(server: unknown, field: string, member: string): OtherServer {
  const url = isObject(server) ? server[member] : undefined;
  return typeof url === 'string' ? { url, field: `${field}.${member}` } : { field };
}
