import type { GenerateCall, OtherServer } from '#core/call';
import type { ToolsMeant, Turn, WantedServer } from '#core/conversation';
import { isObject, type JsonObject } from '#core/json';
import { invalid, missing } from '#core/fault';
import { toolsIn } from '../../shared/lone-items.ts';
import { otherServer } from '../../shared/other-server.ts';
import { isGiven } from '../../shared/read-fields.ts';
import { dialect, type ResponsesRequest } from './wire.ts';

/** A tool of the type `mcp`. https://developers.openai.com/api/docs/guides/tools-connectors-mcp @throws Fault `invalid` */
export function wantedServer(tool: JsonObject, field: string): WantedServer {
  const { server_label: label, server_url: url, connector_id: connector, allowed_tools: allowed, require_approval: approval } = tool;
  if (!isGiven(label)) throw missing(`${field}.server_label`);
  if (typeof label !== 'string' || label === '' || label.length > 256) throw invalid(`${field}.server_label`, 'must be a text of 1 to 256 characters');
  if (isGiven(url) && typeof url !== 'string') throw invalid(`${field}.server_url`, 'must be a string');
  const asking = askingOf(approval, `${field}.require_approval`);
  const credential = ['authorization', 'headers'].find((name) => isGiven(tool[name]));
  return {
    label,
    ...(typeof url === 'string' ? { url } : {}),
    isProviders: isGiven(connector) || isGiven(tool['tunnel_id']),
    ...(isGiven(allowed) ? { allowed: meantBy(allowed, `${field}.allowed_tools`) } : {}),
    ...asking,
    ...(credential === undefined ? {} : { credential }),
    field,
    isListed: false,
  };
}

/**
 * The servers that items of the conversation and namespaces declare, which only a provider of this wire connects to: the gateway calls those that stand alone
 * among the tools of the request.
 */
export function otherServersOf({ tools }: Pick<ResponsesRequest, 'tools'>, turns: readonly Turn[]): Pick<GenerateCall, 'otherServers'> | undefined {
  const otherServers: OtherServer[] = [];
  for (const [at, tool] of tools?.entries() ?? [])
    for (const [server, field] of serversIn(tool, `tools[${at}]`)) otherServers.push(otherServer(server, field, 'server_url'));
  for (const { parts } of turns)
    for (const part of parts) {
      if (part.type !== 'foreign' || part.dialect !== dialect) continue;
      for (const [server] of serversIn(part.value, 'input')) otherServers.push(otherServer(server, 'input', 'server_url'));
    }
  return otherServers.length === 0 ? undefined : { otherServers };
}

/** The tools of the type `mcp` within a tool or an item, however deep, with the places where they stand. */
function* serversIn(value: unknown, field: string): Generator<readonly [server: JsonObject, field: string]> {
  for (const [at, tool] of toolsIn(value)?.entries() ?? []) {
    const place = `${field}.tools[${at}]`;
    if (isObject(tool) && tool['type'] === 'mcp') yield [tool, place];
    yield* serversIn(tool, place);
  }
}

const mostNames = 1000;

/** Names of tools, or `{ tool_names?, read_only? }`. */
function meantBy(value: unknown, field: string): ToolsMeant {
  if (Array.isArray(value)) return { names: namesIn(value, field) };
  if (!isObject(value)) throw invalid(field, 'must be an array of names or an object');
  const { tool_names: names, read_only: readOnly } = value;
  if (isGiven(readOnly) && typeof readOnly !== 'boolean') throw invalid(`${field}.read_only`, 'must be a boolean');
  return { ...(isGiven(names) ? { names: namesIn(names, `${field}.tool_names`) } : {}), ...(typeof readOnly === 'boolean' ? { readOnly } : {}) };
}

function namesIn(value: unknown, field: string): readonly string[] {
  if (!Array.isArray(value) || value.length > mostNames || !value.every((one) => typeof one === 'string'))
    throw invalid(field, `must be an array of at most ${mostNames} names`);
  return value;
}

/** `always` (the default), `never`, or `{ always?, never? }` with the tools that are meant. */
function askingOf(value: unknown, field: string): Pick<WantedServer, 'asked' | 'unasked'> {
  if (!isGiven(value) || value === 'always') return {};
  if (value === 'never') return { unasked: 'all' };
  if (!isObject(value)) throw invalid(field, 'must be "always", "never" or an object');
  const { always, never } = value;
  return {
    ...(isGiven(always) ? { asked: meantBy(always, `${field}.always`) } : {}),
    ...(isGiven(never) ? { unasked: meantBy(never, `${field}.never`) } : {}),
  };
}
