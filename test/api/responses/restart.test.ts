import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { hang, headersThenHang, ok, startUpstream, talkative, type Upstream } from '../../support/fakes/upstream/index.ts';
import { onBothDatabases, onServer } from '../../support/databases.ts';
import { administer } from '../../support/postgres.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { startProcess, type ServerProcess } from '../../support/server-process.ts';

const path = '/server/chatcompat/v1/responses';

let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());
afterEach(() => upstream.reset());

interface Answer {
  readonly id: string;
  readonly status: string;
  readonly error: unknown;
  readonly output: readonly { readonly content: readonly { readonly text: string }[] }[];
}

const ask = async (server: TestServer, address: string, body?: object) => (await (await server.ask(address, body)).json()) as Answer;
const ended = async (server: TestServer, id: string, status: string) => {
  await expect.poll(async () => (await ask(server, `${path}/${id}`)).status, { timeout: 30_000 }).toBe(status);
};

/** A server that is opened again in the same folder. */
async function folder(): Promise<() => Promise<TestServer>> {
  const home = await mkdtemp(join(tmpdir(), 'dragoman-again-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  return () => startTestServer({ folder: home, upstream: upstream.url });
}

test('a conversation is gone on with after a restart', async () => {
  const open = await folder();
  const before = await open();
  const first = await ask(before, path, { model: 'gpt-4o-mini', input: 'my name is Ada' });
  await before.close();
  const after = await open();
  await ask(after, path, { model: 'gpt-4o-mini', input: 'who am I', previous_response_id: first.id });
  expect(JSON.stringify(upstream.requests[1]!.json)).toContain('my name is Ada');
  await after.close();
});

test('a run that has said nothing begins again after a restart', async () => {
  const open = await folder();
  const before = await open();
  upstream.script(hang(), ok());
  const { id } = await ask(before, path, { model: 'gpt-4o-mini', input: 'one two', background: true });
  await upstream.arrived(0);
  await before.close();
  const after = await open();
  await ended(after, id, 'completed');
  expect((await ask(after, `${path}/${id}`)).output[0]!.content[0]!.text).toBe('You said: one two');
  await after.close();
});

interface Row {
  readonly step: number;
  readonly end: string;
}

test('a run that goes on after two orderly restarts is booked for each part of it, under a step of its own', { timeout: 120_000 }, async () => {
  const open = await folder();
  const first = await open();
  upstream.script(hang(), hang(), ok());
  const { id } = await ask(first, path, { model: 'gpt-4o-mini', input: 'one two', background: true });
  await upstream.arrived(0);
  await first.close();
  const again = await open();
  await upstream.arrived(1);
  await again.close();
  const last = await open();
  await ended(last, id, 'completed');
  const rows = async () => {
    const { steps = [], ...row } = (await (await last.ask(`/server/admin/logs/req_${id.slice(5)}`)).json()) as Row & { readonly steps?: readonly Row[] };
    return [row, ...steps].map(({ step, end }) => [step, end]);
  };
  await expect.poll(rows, { timeout: 30_000 }).toEqual([
    [0, 'cancelled'],
    [1000, 'cancelled'],
    [2000, 'completed'],
  ]);
  await last.close();
});

test('a run that had begun to speak fails after a restart, and says why', async () => {
  const open = await folder();
  const before = await open();
  upstream.script(headersThenHang({ afterEvents: 3 }));
  const { id } = await ask(before, path, { model: 'gpt-4o-mini', input: 'one two three four', background: true });
  await ended(before, id, 'in_progress');
  await before.close();
  const after = await open();
  await ended(after, id, 'failed');
  expect((await ask(after, `${path}/${id}`)).error).toMatchObject({ code: 'server_error', message: expect.stringContaining('restarted') });
  expect(upstream.requests).toHaveLength(1);
  await after.close();
});

test.each([true, false])(
  'a stream (%s) of a run that had begun to speak is gone on with after a restart: it fails, in numbers above those that were read',
  async (stream) => {
    const open = await folder();
    const before = await open();
    upstream.script(headersThenHang({ afterEvents: 3 }));
    const begun = await before.ask(path, { model: 'gpt-4o-mini', input: 'one two three four', background: true, stream });
    const id = /"id":"(resp_\w+)"/.exec(stream ? await firstOf(begun) : await begun.text())![1]!;
    await ended(before, id, 'in_progress');
    await before.close();
    const after = await open();
    await ended(after, id, 'failed');
    const rest = async (last: number) => {
      const text = await (await after.ask(`${path}/${id}?stream=true&starting_after=${last}`)).text();
      return Array.from(text.matchAll(/^event: (\S+)\ndata: .*?"sequence_number":(\d+)/gm), ([, type, number]) => [type, Number(number)]);
    };
    for (const last of [1, 2, 3, 11])
      expect(await rest(last)).toEqual([
        ['error', last + 1],
        ['response.failed', last + 2],
      ]);
    await after.close();
  },
);

/** The first piece of a stream, which is then left. */
async function firstOf({ body }: Response): Promise<string> {
  const reader = body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return Buffer.from(value).toString();
}

onBothDatabases('kill -9', ({ place }) => {
  const say = async ({ url, key }: ServerProcess, body: object) => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-4o-mini', ...body }),
    });
    expect(answer.status).toBe(200);
    return answer;
  };

  test('as soon as the stream has ended loses no turn', { timeout: 120_000 }, async () => {
    const home = await place();
    const first = await startProcess(home, upstream.url);
    const text = await (await say(first, { input: 'my name is Ada', stream: true })).text();
    await first.kill();
    const id = /"id":"(resp_\w+)"/.exec(text)![1]!;
    const second = await startProcess(home, upstream.url);
    await say(second, { input: 'who am I', previous_response_id: id });
    expect(JSON.stringify(upstream.requests[1]!.json)).toContain('my name is Ada');
  });
});

test('SIGTERM lets a background response that is being made end: it is completed, and booked once', { timeout: 120_000 }, async () => {
  const home = { folder: await mkdtemp(join(tmpdir(), 'dragoman-again-')) };
  onTestFinished(() => rm(home.folder, { recursive: true, force: true }));
  const first = await startProcess(home, upstream.url);
  const read = async ({ url, key }: ServerProcess, address: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const answer = await fetch(url + address, { headers, ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}) });
    return (await answer.json()) as Answer & { readonly end?: string; readonly steps?: readonly unknown[] };
  };
  const gate = Promise.withResolvers<void>();
  upstream.script(talkative(10, gate.promise));
  const { id } = await read(first, path, { model: 'gpt-4o-mini', input: 'one two', background: true });
  await upstream.arrived(0);
  const stopped = first.stop();
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(first.child.exitCode).toBeNull();
  gate.resolve();
  expect(await stopped).toBe(0);
  const second = await startProcess(home, upstream.url);
  expect((await read(second, `${path}/${id}`)).status).toBe('completed');
  await expect.poll(() => read(second, `/server/admin/logs/req_${id.slice(5)}`), { timeout: 30_000 }).toMatchObject({ end: 'completed', steps: [] });
  expect(upstream.requests).toHaveLength(1);
  expect(await second.stop()).toBe(0);
});

test.skipIf(!inject('postgres'))(
  'a response that is deleted while another machine works on it does not come back when that machine hears of it late',
  { timeout: 120_000 },
  async () => {
    const { databaseUrl, folder: home } = await onServer(inject('postgres')!).place();
    const server = await startTestServer({ folder: home, upstream: upstream.url, databaseUrl: databaseUrl! });
    onTestFinished(server.close);
    const gate = Promise.withResolvers<void>();
    upstream.script(talkative(10, gate.promise));
    const { id } = await ask(server, path, { model: 'gpt-4o-mini', input: 'one two', background: true });
    await upstream.arrived(0);
    await administer(databaseUrl!, 'delete from stored_response');
    gate.resolve();
    await expect.poll(async () => (await ask(server, `/server/admin/logs/req_${id.slice(5)}`)) as object, { timeout: 30_000 }).toHaveProperty('end');
    const next = await ask(server, path, { model: 'built-in', input: 'hello', background: true });
    await ended(server, next.id, 'completed');
    expect((await server.ask(`${path}/${id}`)).status).toBe(404);
  },
);
