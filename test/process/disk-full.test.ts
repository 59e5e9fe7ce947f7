/* Too little room on the disk of the journal. */
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { tally } from '../accounting/exactness.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { administrate, askWith, fixed, loggedBy } from '../support/members.ts';
import { calm, expectNoDrift, mixedLoad } from '../support/mixed-load.ts';
import { startProcess } from '../support/server-process.ts';
import { proves } from '../support/proves.ts';

const minute = 60_000;
const noRoom = `${calm}limits: { minFreeBytes: ${2 ** 52} }\n`;

test(
  proves(
    'D-02',
    'with a full disk calls are refused with 503 and Retry-After, running streams end well, everything else answers, and with free space calls are accepted again without a restart',
  ),
  async () => {
    const where = await embedded.place();
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const server = await startProcess(where, upstream.url, calm);
    const status = async () => (await askWith(server, server.key, fixed)).status;
    const load = mixedLoad(upstream, 4);
    const clients = load.run(server);
    await expect.poll(() => load.outcomes.size, { timeout: 30_000 }).toBeGreaterThan(20);
    const running = askWith(server, server.key, { model: 'gpt-4o-mini', stream: true, messages: [{ role: 'user', content: 'This is running for slow .' }] });
    await running;
    await server.reload(noRoom);
    await expect.poll(status, { timeout: 30_000 }).toBe(503);
    expect(await (await running).text()).toMatch(/data: \[DONE\]\n\n$/);

    const asked = upstream.requests.length;
    const refused = await askWith(server, server.key, fixed);
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await refused.json()).toMatchObject({ error: { code: 'overloaded' } });
    expect(await tally(Array.from({ length: 20 }, () => askWith(server, server.key, { ...fixed, model: 'gpt-4o-mini' })))).toEqual({ 503: 20 });
    expect(upstream.requests.length).toBe(asked);
    const ready = await fetch(`${server.url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'unready', missing: ['disk'] }]);
    for (const path of ['/healthz', '/metrics'])
      expect((await fetch(server.url + path, { headers: { authorization: `Bearer ${server.key}` } })).status).toBe(200);
    expect(await administrate(server, 'GET', '/users')).toMatchObject({ items: [{ id: 1 }] });

    await server.reload(calm);
    await expect.poll(status, { timeout: 30_000 }).toBe(200);
    load.stop();
    await clients;
    expect([...load.outcomes.values()]).not.toContain('broken');
    await load.audit(server);
    expect((await loggedBy(server)).filter(({ status }) => status === 503)).toEqual([]);
    expect(await server.stop()).toBe(0);
    await expectNoDrift(where);
  },
  2 * minute,
);
