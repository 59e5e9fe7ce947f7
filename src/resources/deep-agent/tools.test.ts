import { expect, test } from 'vitest';
import type { Run, ToolContext } from '#core/run';
import type { AgentServerTool } from '#core/server-tools';
import type { DeepQuestion } from '../deep-question.ts';
import { Sources } from './sources.ts';
import { toolsFor } from './tools.ts';

const question: DeepQuestion = { text: 'x', turns: [], model: 'm', datasets: [], limit: 0, web: false, tools: [], instructions: '', today: '' };
const tool: AgentServerTool = {
  declared: { type: 'function', name: 'files__one' },
  server: 3,
  serverName: 'files',
  name: 'one',
  digest: 'd',
  isReadOnly: false,
  needsApproval: true,
  asks: 'first',
  isApproved: false,
};
const called: string[] = [];
const deps = {
  search: () => Promise.reject(new Error('Nothing is searched.')),
  web: { search: undefined, read: () => Promise.resolve(undefined) },
  tools: { call: (_caller: unknown, { tool: name }: { tool: string }) => Promise.resolve({ text: String(called.push(name)), isError: false }) },
};
const toolOf = (more: Partial<AgentServerTool>) => toolsFor(deps, question, [{ ...tool, ...more }])({} as Run, new Sources())[0]!;

test('a tool of a server is approved once for the run, unless its server asks for each call', () => {
  expect(toolOf({}).approvedWith).toBe('3/d/one');
  expect(toolOf({ digest: 'other' }).approvedWith).not.toBe('3/d/one');
  expect(toolOf({ asks: 'always' })).not.toHaveProperty('approvedWith');
});

test('a key that has lost the scope of MCP servers since the run began calls none', async () => {
  const asking = (scopes: readonly string[]) => ({ caller: { scopes }, context: {} }) as unknown as ToolContext;
  await expect(toolOf({}).work({}, asking(['agent_builder']))).rejects.toMatchObject({ code: 'forbidden' });
  expect(called).toEqual([]);
  await toolOf({}).work({}, asking(['agent_builder', 'mcp']));
  expect(called).toEqual(['one']);
});
