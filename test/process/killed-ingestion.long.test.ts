/* A server that is killed again and again while it ingests a file. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { idOf, newDataset } from '../api/datasets/people.ts';
import { person, visitorsOf } from '../api/native/visitors.ts';
import { embedded } from '../support/databases.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { startProcess, type ServerProcess } from '../support/server-process.ts';

const stages = ['parse', 'embed', 'embed', 'index'];
const minute = 60_000;

test('has the file done within a minute of each restart, with each passage once', { timeout: 8 * minute }, async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const place = await embedded.place();
  let server = await startProcess(place, upstream.url, '');
  const all = () => visitorsOf({ url: server.url, key: server.key } as Parameters<typeof visitorsOf>[0]);
  const ada = await person(all());
  const id = await idOf(ada, await newDataset(ada, 'killed'));
  const path = `/server/mine/datasets/${id}/files`;
  const ask = (method: string, address: string, body?: string) => all().as(ada.key)(method, address, body, { headers: { 'content-type': 'text/markdown' } });
  for (const [number, stage] of stages.entries()) {
    const text = Array.from(
      { length: 160 },
      (_, at) => `# Part ${number} ${at}\n\n${`The heron number ${at} of ${number} stands at the harbour. `.repeat(9)}`,
    ).join('\n\n');
    const put = await ask('POST', `${path}?filename=${number}.md`, text);
    expect(put.status).toBe(202);
    const [made] = put.body['items'] as [{ id: number; jobId: string }];
    const one = `${path}/${made.id}`;
    const seen = await until(async () => (await ask('GET', one)).body, (body) => body['stage'] === stage || body['state'] === 'done'); // prettier-ignore
    await sleep(40 * number);
    server = await restarted(server, () => startProcess(place, upstream.url, ''));
    const since = performance.now();
    const done = await until(async () => (await ask('GET', one)).body, ({ state }) => state === 'done' || state === 'failed'); // prettier-ignore
    expect([stage, done['state'], done['reason']]).toEqual([stage, 'done', null]);
    expect(performance.now() - since).toBeLessThan(minute);
    expect([seen['state'], done['passages']]).toEqual([expect.toBeOneOf(['waiting', 'running', 'done']), expect.any(Number)]);

    const passages: { start: number; end: number }[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body } = await ask('GET', `${one}/passages?limit=100${cursor && `&cursor=${cursor}`}`);
      passages.push(...(body['items'] as typeof passages));
      cursor = body['nextCursor'] as string | null;
    }
    expect(passages).toHaveLength(done['passages'] as number);
    const places = passages.map(({ start }) => start);
    expect(places).toEqual([...new Set(places)].toSorted((a, b) => a - b)); // in order, none twice
    expect(passages.at(-1)!.end).toBe(text.trimEnd().length);
  }
});

async function restarted(server: ServerProcess, start: () => Promise<ServerProcess>): Promise<ServerProcess> {
  await server.kill();
  return start();
}

async function until(look: () => Promise<Record<string, unknown>>, is: (body: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
  for (;;) {
    const body = await look();
    if (is(body)) return body;
    await sleep(5);
  }
}
