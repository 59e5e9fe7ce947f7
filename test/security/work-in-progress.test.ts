/* Work that goes on behind a request: what ends with the session or the key that it was begun with, and what does not. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { onBothDatabases } from '../support/databases.ts';
import { hang, startUpstream, talkative, type Upstream } from '../support/fakes/upstream/index.ts';
import { browser, type Browser } from '../api/native/browsers.ts';
import { person, visited, type Person, type Visited } from '../api/native/visitors.ts';

vi.mock('node:crypto', async (original) => (await import('../support/cheap-scrypt.ts')).cheapScrypt(await original()));

const long = 120_000;
const responses = '/server/chatcompat/v1/responses';
const password = 'correct horse';

let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());
afterEach(() => upstream.reset());

interface Begun {
  readonly states: () => Promise<readonly unknown[]>;
  readonly errors: () => Promise<readonly unknown[]>;
}

/** Begins a run of an agent and a background response, both of which wait for their provider. @param reader with which they are read */
async function begun({ ask }: Pick<Browser, 'ask'>, reader: Pick<Person, 'ask'>): Promise<Begun> {
  const agent = await ask('POST', '/server/mine/agents', { name: 'Greeter', mode: 'single', instructions: 'Be kind.', model: 'gpt-4o-mini' });
  expect(agent.status).toBe(201);
  const before = upstream.requests.length;
  const answered = ask('POST', '/server/execute-agent', { agent_id: agent.body['id'], message: 'Go on.', streaming: false });
  answered.catch(() => {}); // the request may end before the run
  const queued = await ask('POST', responses, { model: 'gpt-4o-mini', input: 'Go on.', background: true });
  expect(queued.status).toBe(200);
  await expect.poll(() => upstream.requests.length).toBe(before + 2);
  const found = async () => {
    const { items } = (await reader.ask('GET', '/server/mine/runs')).body as { items: readonly { id: string; state: string }[] };
    const response = (await reader.ask('GET', `${responses}/${String(queued.body['id'])}`)).body;
    return { run: items[0]!, response };
  };
  return {
    async states() {
      const { run, response } = await found();
      return [run.state, response['status']];
    },
    async errors() {
      const { run, response } = await found();
      const { body } = await reader.ask('GET', `/server/mine/runs/${run.id}`);
      return [body['answer'] ?? body['message'], (response['error'] as { message?: string } | null)?.message];
    },
  };
}

/** A provider that answers when it is told to. */
function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  upstream.script(talkative(5, promise), talkative(5, promise));
  return resolve;
}

const over = async (one: Pick<Browser, 'ask'>) => {
  await expect.poll(async () => (await one.ask('GET', '/server/mine')).status).toBe(401);
};
const narrow = ({ admin }: Visited, { id, keyId }: Person) => admin('PATCH', `/server/mine/keys/${keyId}?owner=${id}`, { scopes: ['mcp'] });

onBothDatabases('work in progress', ({ place }) => {
  test('goes on when the session ends that it was begun with, by a sign-out or by a new password', { timeout: long }, async () => {
    const all = await visited(await place(), { upstream: upstream.url });
    for (const how of ['sign-out', 'password'] as const) {
      const ada = await person(all, { password });
      const here = await browser(all, ada.email, password);
      const answer = held();
      const work = await begun(here, ada);
      if (how === 'sign-out') expect((await here.ask('DELETE', '/server/session')).status).toBe(200);
      else expect((await ada.ask('PUT', '/server/mine/password', { old: password, new: 'another horse' })).status).toBe(200);
      await over(here);
      answer();
      await expect.poll(work.states).toEqual(['completed', 'completed']);
    }
  });

  test('stops when its user is suspended, and does not go on when they may work again', { timeout: long }, async () => {
    const all = await visited(await place(), { upstream: upstream.url });
    const ada = await person(all, { password });
    const here = await browser(all, ada.email, password);
    upstream.script(hang(), hang());
    const work = await begun(here, ada);
    const status = (to: string) => all.admin('PATCH', `/server/admin/users/${ada.id}`, { status: to });
    expect((await status('suspended')).status).toBe(200);
    await upstream.closed(upstream.requests.length - 1);
    await upstream.closed(upstream.requests.length - 2);
    expect((await status('active')).status).toBe(200);
    await expect.poll(work.states).toEqual(['failed', 'failed']);
  });

  test('stops when the key is deleted that it was begun with, and when that key loses the scope for it', { timeout: long }, async () => {
    const all = await visited(await place(), { upstream: upstream.url });
    for (const end of [({ admin }: Visited, { id, keyId }: Person) => admin('DELETE', `/server/mine/keys/${keyId}?owner=${id}`), narrow]) {
      const ada = await person(all, { password });
      const reader = await browser(all, ada.email, password);
      upstream.script(hang(), hang());
      const work = await begun(ada, reader);
      expect((await end(all, ada)).status).toBe(200);
      await expect.poll(work.states).toEqual(['failed', 'failed']);
    }
  });
});
