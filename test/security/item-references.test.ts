/* A request may name many items of one stored response. */
import { inputItemId } from '#dialects/openai/responses/encode-items';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { startProcess } from '../support/server-process.ts';
import { loopWatch, watched } from './watched.ts';

test('many references to the items of one response do not hold the event loop', { timeout: 120_000 }, async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startProcess(await embedded.place(), upstream.url, '', { preload: loopWatch });
  const { url, key } = server;
  const ask = (body: object) =>
    fetch(`${url}/server/chatcompat/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'built-in', ...body }),
      signal: AbortSignal.timeout(60_000),
    });
  const input = Array.from({ length: 2000 }, () => ({ role: 'user', content: 'x' }));
  const first = await ask({ input });
  const { id } = (await first.json()) as { id: string };
  const named = { input: input.map((_, at) => ({ type: 'item_reference', id: inputItemId(id, at) })), store: false };
  const stretches: number[] = [];
  // Code that is not warm yet, and a collection of garbage that fell due just then, are no fault of the request.
  for (let again = 0; again < 3; again++) {
    await watched(server);
    const second = await ask(named);
    expect(second.status).toBe(200);
    await second.text();
    stretches.push((await watched(server)).stretch);
  }
  expect(Math.min(...stretches)).toBeLessThanOrEqual(50);
});
