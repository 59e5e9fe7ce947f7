/* Streams of the native interface whose client does not read. */
import { expect, test } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { ok } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

const { server, upstream } = await scriptedServer(({ url }) => ({ yaml: everyWire({ url }) }));
const text = `${'w'.repeat(1023)} `.repeat(16 * 1024);

test.each(['text/plain', 'text/event-stream'])('an answer as %s waits at the provider until the client reads', { timeout: 180_000 }, async (accept) => {
  upstream.script(ok({ text }));
  const headers = { accept };
  const answer = await server.ask('/server/query_stream', { model: 'chat', message: 'x' }, { headers });
  let before = -1;
  await expect
    .poll(
      async () => {
        before = upstream.requests.at(-1)!.piecesSent;
        await sleep(1000);
        return upstream.requests.at(-1)!.piecesSent - before;
      },
      { timeout: 60_000 },
    )
    .toBe(0);
  expect(upstream.requests.at(-1)!.answeredAt).toBeUndefined();
  const frames = (await answer.text()).split(accept === 'text/plain' ? '@|@sep@|@' : '\n\ndata: ');
  const { type, message } = JSON.parse(frames.at(-1)!) as { readonly type: string; readonly message: string };
  expect([type, message === text]).toEqual(['completion', true]);
  expect(frames.length).toBeGreaterThan(2);
});
