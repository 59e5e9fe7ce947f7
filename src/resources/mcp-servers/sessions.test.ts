import { expect, test } from 'vitest';
import type { GuardedStreams } from '#kit/net/guarded-stream';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openMcpSessions, type McpSession } from './sessions.ts';

type Message = { readonly id?: unknown; readonly method: string; readonly params?: unknown };

/** Sessions with a server that answers each request with a result, a status and words about the session, a response of its own, or not at all. */
function scripted(answer: (message: Message, session: string) => object | number | undefined | Promise<number | Response>) {
  let sessionsOpened = 0;
  const streams: GuardedStreams = {
    async open({ body, method, headers = {}, signal }) {
      if (method !== 'POST') return new Response(null, { status: 405 });
      const message = JSON.parse(body!) as Message;
      const reply = (said: object, more: Record<string, string> = {}) =>
        Response.json({ jsonrpc: '2.0', id: message.id, ...said }, { headers: { 'content-type': 'application/json', ...more } });
      if (message.method === 'server/discover') return reply({ error: { code: -32_601, message: 'Method not found' } });
      if (message.method === 'initialize') {
        const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };
        return reply({ result }, { 'mcp-session-id': `session-${++sessionsOpened}` });
      }
      if (message.id === undefined) return new Response(null, { status: 202 });
      const said = await answer(message, headers['mcp-session-id'] ?? '');
      if (typeof said === 'number')
        return Response.json({ jsonrpc: '2.0', id: message.id, error: { code: -32_001, message: 'Session not found' } }, { status: said });
      if (said instanceof Response) return said;
      if (said) return reply({ result: said });
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
    },
  };
  const clock = testClock();
  const sessions = openMcpSessions({ streams, clock });
  const { signal } = new AbortController();
  const using = <Result>(work: (session: McpSession) => Promise<Result>) =>
    sessions.use({ userId: 1, serverId: 1, place: { url: 'https://mcp.example/mcp', headers: {} }, signal }, work);
  return { clock, sessions, signal, using };
}

const one = { name: 'one', description: '', inputSchema: { type: 'object' } };

test('a list of which every page comes in time has a deadline as a whole', async () => {
  let pages = 0;
  const { clock, signal, using } = scripted(() => {
    clock.advance(4000); // each page
    return ++pages > 20 ? { tools: [one] } : { tools: [one], nextCursor: String(pages) };
  });
  await expect(using((session) => session.list(signal))).rejects.toMatchObject({
    trouble: 'unreachable',
    message: expect.stringContaining('in time') as string,
  });
  expect(pages).toBeLessThan(8);
  pages = 21;
  expect(await using((session) => session.list(signal))).toHaveLength(1);
});

test('a list is as old as it may be, counted from when it came', async () => {
  let lists = 0;
  const { clock, signal, using } = scripted(() => {
    clock.advance(4000); // a slow server
    lists++;
    return { tools: [one] };
  });
  const list = (oldest?: number) => using((session) => session.list(signal, oldest));
  await list(5000);
  clock.advance(4000);
  await Promise.all([list(5000), list(5000), list()]);
  expect(lists).toBe(1);
  clock.advance(1000);
  await list();
  expect(lists).toBe(1);
  await Promise.all([list(5000), list(5000)]);
  expect(lists).toBe(2);
});

test('what a list shows to have changed counts in all other sessions with the server at once', async () => {
  let description = 'before';
  const { sessions, signal } = scripted(() => ({ tools: [{ ...one, description }] }));
  const list = (userId: number, serverId: number, oldest?: number) =>
    sessions.use(
      { userId, serverId, place: { url: 'https://mcp.example/mcp', headers: {} }, signal },
      async (session) => (await session.list(signal, oldest))[0]!.description,
    );
  for (const [userId, serverId] of [[1, 1], [2, 1], [2, 2]] as const) await list(userId, serverId); // prettier-ignore
  description = 'after';
  expect([await list(1, 1), await list(2, 1)]).toEqual(['before', 'before']);
  expect([await list(1, 1, 0), await list(2, 1), await list(2, 2)]).toEqual(['after', 'after', 'before']);
});

/** A server that knows one session, and counts what it was called for in another. */
function restarting(status: number) {
  const server = { known: 'session-1', refused: 0 };
  const { signal, using } = scripted(({ method }, session) => {
    if (session !== server.known && ++server.refused) return status;
    return method === 'tools/list' ? { tools: [one] } : { content: [{ type: 'text', text: session }] };
  });
  const call = () =>
    using(async (session) => {
      await session.list(signal);
      return session.call('one', {}, signal);
    });
  return { server, call };
}

test.each([404, 400])('a server that was restarted and answers the old session with %i is called in a new one', async (status) => {
  const { server, call } = restarting(status);
  expect(await call()).toMatchObject({ text: 'session-1' });
  server.known = 'session-2';
  expect(await call()).toMatchObject({ text: 'session-2' });
  expect(server.refused).toBe(1);
});

test('calls whose session is lost at the same time do not end each other', async () => {
  const again = Promise.withResolvers<void>();
  let refused = 0;
  const { signal, using } = scripted(({ method }, session) => {
    if (method === 'tools/list') return { tools: [one] };
    if (session === 'session-1') return ++refused === 1 ? 404 : again.promise.then(() => 404); // the others, when the first is called anew
    again.resolve();
    return { content: [{ type: 'text', text: session }] };
  });
  await using((session) => session.list(signal));
  const all = await Promise.all(Array.from({ length: 3 }, () => using((session) => session.call('one', {}, signal))));
  expect([refused, all.map(({ text }) => text)]).toEqual([3, ['session-2', 'session-2', 'session-2']]);
});

test('a call that is answered with 400 for another reason is not made twice', async () => {
  let calls = 0;
  const { signal, using } = scripted(({ id, method }) => {
    if (method === 'tools/list') return { tools: [one] };
    calls++;
    return Response.json({ jsonrpc: '2.0', id, error: { code: -32_602, message: 'The browser session is closed.' } }, { status: 400 });
  });
  await using((session) => session.list(signal));
  await expect(using((session) => session.call('one', {}, signal))).rejects.toMatchObject({ name: 'McpFailure', status: 400 });
  expect(calls).toBe(1);
});

test('what goes on in a lost session counts for its user, and ends with the server', async () => {
  let refused: string | undefined;
  const { sessions, signal, using } = scripted(({ method }, session) => {
    if (method === 'tools/list') return { tools: [one] };
    return refused === session ? 404 : undefined;
  });
  const ends: Promise<unknown>[] = [];
  const hanging = () => void ends.push(using((session) => session.call('one', {}, signal)).catch((error: unknown) => error));
  for (let at = 1; at <= 8; at++) {
    await using((session) => session.list(signal, 0));
    hanging();
    await using((session) => session.list(signal, 0)); // in the session that the call has
    refused = `session-${at}`;
    hanging(); // is refused there, and made in the next one
  }
  await expect(using((session) => session.list(signal))).resolves.toHaveLength(1);
  sessions.forget(1);
  expect(await Promise.all(ends)).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'McpFailure' })]));
});

test.each(['forgotten', 'closed'] as const)('what goes on in a session when it is %s is not done again in a new one', async (how) => {
  let lists = 0;
  const { sessions, signal, using } = scripted(({ method }) => (method === 'tools/list' ? (++lists, { tools: [one] }) : { content: [] }));
  await using((session) => session.list(signal));
  const going = using(async (session) => {
    await session.list(signal, 0);
    await (how === 'forgotten' ? sessions.forget(1) : sessions.close());
    await new Promise((resolve) => setImmediate(resolve)); // its connection is closed
    return session.call('one', {}, signal);
  });
  await expect(going).rejects.toMatchObject({ name: 'McpFailure', trouble: 'unreachable' });
  expect(lists).toBe(2);
});

test('a server that does not know the new session either is asked once more, and no further', async () => {
  const { server, call } = restarting(404);
  await call();
  server.known = 'none';
  await expect(call()).rejects.toMatchObject({ name: 'McpFailure', status: 404 });
  expect(server.refused).toBe(2);
});

test.each([401, 500])('a server that was restarted and answers the old session with %i is connected to anew at the next use', async (status) => {
  const { server, call } = restarting(status);
  expect(await call()).toMatchObject({ text: 'session-1' });
  server.known = 'session-2';
  await expect(call()).rejects.toMatchObject({ name: 'McpFailure', status });
  expect(await call()).toMatchObject({ text: 'session-2' });
});

test('a call that fails ends no other call of its session, and the next one has a new session', async () => {
  const [asked, failed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { signal, using } = scripted(({ id, method, params }, session) => {
    if (method === 'tools/list') return { tools: [one] };
    const { bad, slow } = (params as { arguments: { bad?: true; slow?: true } }).arguments;
    if (bad) return new Response('boom', { status: 500 });
    if (!slow) return { content: [{ type: 'text', text: session }] };
    asked.resolve();
    return failed.promise.then(() => Response.json({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: session }] } }));
  });
  const call = (args: object) => using((session) => session.call('one', { ...args }, signal));
  const slow = call({ slow: true });
  await asked.promise;
  await expect(call({ bad: true })).rejects.toMatchObject({ trouble: 'refused', status: 500 });
  expect(await call({})).toMatchObject({ text: 'session-2' });
  failed.resolve();
  expect(await slow).toMatchObject({ text: 'session-1' });
});

test('a call fails for its own status, whatever the server answers to another one meanwhile', async () => {
  const [asked, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { signal, using } = scripted(({ method, params }) => {
    if (method === 'tools/list') return { tools: [one] };
    if (!(params as { arguments: { slow?: true } }).arguments.slow) return new Response('sign in', { status: 401 });
    asked.resolve();
    const body = new ReadableStream({ pull: async (controller) => ended.promise.then(() => controller.close()) });
    return new Response(body, { status: 500 });
  });
  const call = (args: object) => using((session) => session.call('one', { ...args }, signal));
  const slow = call({ slow: true });
  await asked.promise;
  await expect(call({})).rejects.toMatchObject({ trouble: 'sign-in', status: 401 });
  ended.resolve();
  await expect(slow).rejects.toMatchObject({ trouble: 'refused', status: 500 });
});

test('of the definitions of a server 512 KB are kept, no further page is asked for, and that something is left out is said', async () => {
  let pages = 0;
  let size = 60_000;
  const { signal, using } = scripted(() => {
    const tools = Array.from({ length: 4 }, (_, at) => ({ ...one, name: `t${pages}.${at}`, inputSchema: { type: 'object', description: 'x'.repeat(size) } }));
    return { tools, nextCursor: ++pages < 20 ? String(pages) : undefined };
  });
  const listed = () => using(async (session) => [(await session.list(signal, 0)).length, session.leftOut()]);
  expect([await listed(), pages]).toEqual([[8, expect.stringContaining('512 KB')], 3]);
  [pages, size] = [0, 10];
  expect([await listed(), pages]).toEqual([[80, null], 20]);
});

test('a ninth session of a user waits for ten seconds until one of the eight is free', async () => {
  const { clock, sessions } = scripted(() => ({ tools: [one] }));
  const { signal } = new AbortController();
  const use = (serverId: number, work: (session: McpSession) => Promise<unknown>, within: AbortSignal = signal) =>
    sessions.use({ userId: 1, serverId, place: { url: 'https://mcp.example/mcp', headers: {} }, signal: within }, work);
  const [begun, ends] = [Array.from({ length: 8 }, () => Promise.withResolvers<void>()), Array.from({ length: 8 }, () => Promise.withResolvers<void>())];
  const held = ends.map(({ promise }, at) =>
    use(at, () => {
      begun[at]!.resolve();
      return promise;
    }),
  );
  await Promise.all(begun.map(({ promise }) => promise));
  const [late, left] = [use(8, () => Promise.resolve('late')), new AbortController()];
  const leaving = use(9, () => Promise.resolve('left'), left.signal);
  left.abort(new Error('left'));
  await expect(leaving).rejects.toThrow('left');
  clock.advance(10_000);
  await expect(late).rejects.toMatchObject({ code: 'rate-limited' });
  const waiting = [use(8, () => Promise.resolve('eight')), use(9, () => Promise.resolve('nine'))];
  ends[0]!.resolve();
  expect(await Promise.all(waiting)).toEqual(['eight', 'nine']);
  for (const { resolve } of ends) resolve();
  await Promise.all(held);
});

test('who waits for a session when all are closed gets none', async () => {
  const { sessions, signal } = scripted(() => ({ tools: [one] }));
  const use = (serverId: number, work: (session: McpSession) => Promise<unknown>) =>
    sessions.use({ userId: 1, serverId, place: { url: 'https://mcp.example/mcp', headers: {} }, signal }, work);
  const [begun, ends] = [Array.from({ length: 8 }, () => Promise.withResolvers<void>()), Promise.withResolvers<void>()];
  const held = begun.map(({ resolve }, at) =>
    use(at, () => {
      resolve();
      return ends.promise;
    }),
  );
  await Promise.all(begun.map(({ promise }) => promise));
  const waiting = use(8, () => Promise.resolve('eight')).catch((error: unknown) => error);
  await sessions.close();
  expect(await waiting).toMatchObject({ name: 'McpFailure', trouble: 'unreachable' });
  ends.resolve();
  await Promise.all(held);
});

test('closing waits for no server that does not answer a connection', async () => {
  const asked = Promise.withResolvers<void>();
  const streams: GuardedStreams = {
    open({ signal }) {
      asked.resolve();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
    },
  };
  const sessions = openMcpSessions({ streams, clock: testClock() }); // no time goes by
  const { signal } = new AbortController();
  const place = { url: 'https://mcp.example/mcp', headers: {} };
  const using = sessions.use({ userId: 1, serverId: 1, place, signal }, (session) => session.list(signal)).catch((error: unknown) => error);
  await asked.promise;
  await sessions.close();
  expect(await using).toMatchObject({ trouble: 'unreachable', message: expect.stringContaining('was closed') as string });
});
