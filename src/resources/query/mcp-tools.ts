import { createHash } from 'node:crypto';
import { ignoringTools } from '#core/ignoring';
import type { Caller, Context } from '#core/context';
import type { ForeignTool, TakenCalls, Turn, WaitingCalls, WantedTool } from '#core/conversation';
import { Fault, invalid } from '#core/fault';
import type { GenerateResult } from '#core/fold';
import type { QueryFields } from './fields.ts';

/** Keeps calls of tools that wait for their user. */
export interface WaitingTools {
  readonly keep: (userId: number, conversation: string, waiting: WaitingCalls) => Promise<boolean>;
  readonly take: (userId: number, conversation: string, ids: readonly string[]) => Promise<TakenCalls | undefined>;
  readonly over: (userId: number, id: number) => Promise<void>;
}

/** What a question says of tools of MCP servers. */
export interface McpFields {
  readonly tools: readonly WantedTool[];
  /** What names no tool. */
  readonly unknown: readonly string[];
  /** Ids of calls that are approved. */
  readonly approved: readonly string[];
}

/** @throws Fault `invalid` naming the field; `forbidden` for a credential without the scope */
export function mcpFieldsIn({ enabled_mcp_tools: enabled, tools_to_execute: execute }: QueryFields, { scopes }: Pick<Caller, 'scopes'>): McpFields {
  const { tools, unknown } = Array.isArray(enabled) ? toolsNamed(enabled) : toolsOfServers(enabled ?? {});
  const approved = [...new Set(execute ?? [])];
  if ((tools.length > 0 || approved.length > 0) && scopes && !scopes.includes('mcp'))
    throw new Fault('forbidden', 'The tools of MCP servers need a key with the scope mcp.', { reason: 'scope' });
  return { tools, unknown, approved };
}

/** `<server id>_<tool>` */
function toolsNamed(ids: readonly string[]): Pick<McpFields, 'tools' | 'unknown'> {
  const found = ids.map((id) => ({ id, parts: /^([1-9]\d{0,14})_(.+)$/s.exec(id) }));
  return {
    tools: found.flatMap(({ parts }) => (parts ? [{ server: Number(parts[1]), tool: parts[2]!, asks: false }] : [])),
    unknown: found.flatMap(({ id, parts }) => (parts ? [] : [id.slice(0, 100)])),
  };
}

const most = 1000;

/** `{ "<server id>": [["<tool>", <whether each call is to be approved>]] }` */
function toolsOfServers(servers: object): Pick<McpFields, 'tools' | 'unknown'> {
  const tools: WantedTool[] = [];
  const unknown: string[] = [];
  for (const [id, list] of Object.entries(servers) as readonly (readonly [string, unknown])[]) {
    if (!Array.isArray(list)) throw wrong();
    if (!/^[1-9]\d{0,14}$/.test(id)) unknown.push(id.slice(0, 100));
    else
      for (const item of list as readonly unknown[]) {
        if (!Array.isArray(item) || typeof item[0] !== 'string' || item[0].length > 300) throw wrong();
        if (item[1] !== undefined && typeof item[1] !== 'boolean') throw wrong();
        tools.push({ server: Number(id), tool: item[0], asks: item[1] === true });
      }
    if (tools.length + unknown.length > most) throw wrong();
  }
  return { tools, unknown };
}

const wrong = () => invalid('enabled_mcp_tools', 'must be a list of unique ids, or have a list of [tool, whether to ask] for each id of a server');

/** The calls that were approved. @throws Fault `not-found` for those that do not wait */
export async function takenCalls({ approved }: McpFields, turns: readonly Turn[], waiting: WaitingTools, { caller }: Context): Promise<TakenCalls> {
  const taken = await waiting.take(caller.userId, conversationOf(turns), approved);
  if (taken) return taken;
  throw new Fault('not-found', 'tools_to_execute: no such calls wait for an approval in this conversation.', { field: 'tools_to_execute' });
}

/** What stands for the tools in a call, with the calls that were approved. @throws Fault `invalid` where the client is strict and names tools that are not there */
export function wantedTool(fields: McpFields, taken: TakenCalls | undefined, context: Context): readonly ForeignTool[] {
  ignoringTools(fields.unknown, context);
  if (fields.tools.length === 0 && !taken) return [];
  const again = (taken?.calls ?? []).filter(({ server, tool }) => !fields.tools.some((one) => one.server === server && one.tool === tool));
  const tools = [...fields.tools, ...again.map(({ server, tool }) => ({ server, tool, asks: true }))];
  const resumed = taken ? { resumed: { ...taken, approved: fields.approved } } : {};
  return [{ type: 'foreign', dialect: 'native', value: {}, field: 'enabled_mcp_tools', wanted: { tools, ...resumed } }];
}

/** Keeps the calls that wait for their user. @returns the answer, without those that are too large to be kept: nobody could approve them */
export async function withKeptCalls(
  result: GenerateResult,
  turns: readonly Turn[],
  waiting: WaitingTools,
  { caller, progress }: Context,
): Promise<GenerateResult> {
  if (!progress.waiting || (await waiting.keep(caller.userId, conversationOf(turns), progress.waiting))) return result;
  (progress.warnings ??= []).push('enabled_mcp_tools: calls that need an approval are left out, as the conversation before them is too large to be kept');
  const left = new Set(progress.waiting.calls.map(({ id }) => id));
  const candidates = result.candidates.map((one) => ({ ...one, parts: one.parts.filter((part) => part.type !== 'tool-call' || !left.has(part.id)) }));
  return { ...result, candidates };
}

/** Tells one conversation from another. */
const conversationOf = (turns: readonly Turn[]): string => createHash('sha256').update(JSON.stringify(turns)).digest('base64url');
