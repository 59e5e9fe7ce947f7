import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import type { Approval } from './policy.ts';
import type { McpSession, McpSessions } from './sessions.ts';
import type { McpServer, McpServerStore } from './store.ts';
import { openMcpTools } from './tools.ts';

const reader = { userId: 1, teamIds: [] };
const { signal } = new AbortController();

/** Tools of one server, and what its lists might be old when they were asked for. */
function asked(approval: Approval) {
  const ages: (number | undefined)[] = [];
  const server = {
    id: 7,
    name: 's',
    url: 'https://mcp.example/mcp',
    hasHeaders: false,
    tools: null,
    approval,
    signIn: null,
    operatorName: null,
  } as unknown as McpServer;
  const session: McpSession = {
    list(_signal, oldest) {
      ages.push(oldest);
      return Promise.resolve([{ name: 'one', description: '', inputSchema: {}, digest: 'd', isReadOnly: true, bytes: 1, namesHeaders: false }]);
    },
    call: () => Promise.resolve({ text: 'done', isError: false }),
    leftOut: () => null,
  };
  const tools = openMcpTools({
    servers: {
      one: async () => server,
      usable: async () => [server],
      approvals: async () => new Map<string, string>(),
      noted: async () => {},
    } as unknown as McpServerStore,
    sessions: { use: (_asked: unknown, work: (session: McpSession) => Promise<unknown>) => work(session) } as unknown as McpSessions,
    clock: testClock(),
    policy: () => ({ mode: 'open', approval: 'never', whitelist: [], stdio: [], allowed: [] }),
    resolve: async (_by, text) => text,
    signIns: { bearer: () => undefined } as unknown as Parameters<typeof openMcpTools>[0]['signIns'],
  });
  return { tools, ages };
}

test.each<[Approval, number | undefined]>([
  ['first', 5000],
  ['always', 5000],
  ['never', undefined],
])('before a tool is shown to a model or called, its list is a recent one where approvals are of definitions: %s', async (approval, oldest) => {
  const { tools, ages } = asked(approval);
  await tools.all(reader, { signal });
  await tools.of(reader, 7, { signal });
  await tools.call(reader, { server: 7, tool: 'one', args: {} }, signal);
  expect(ages).toEqual([oldest, oldest, oldest]);
  await tools.inTime(reader, { signal });
  await tools.of(reader, 7, { signal, refresh: true });
  expect(ages.slice(3)).toEqual([undefined, 0]);
});
