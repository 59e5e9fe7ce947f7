import { expect, test } from 'vitest';
import { slowThinker, startUpstream } from '../../support/fakes/upstream/index.ts';
import { chat, startTestServer } from '../../support/server.ts';

test('a model that thinks for 90 s: headers after 10 s, comments after that, then the answer', async () => {
  const upstream = await startUpstream();
  const server = await startTestServer({ upstream: upstream.url });
  upstream.script(slowThinker(90));
  const startedAt = performance.now();
  const answer = await server.ask(chat, { model: 'gpt-4o-mini', stream: true, messages: [{ role: 'user', content: 'take your time' }] });
  const heldSeconds = (performance.now() - startedAt) / 1000;
  expect(heldSeconds).toBeGreaterThan(9.5);
  expect(heldSeconds).toBeLessThan(11);
  const text = await answer.text();
  expect((performance.now() - startedAt) / 1000).toBeGreaterThan(89);
  expect(text.match(/^: /gm)!.length).toBeGreaterThanOrEqual(6);
  expect(text).toContain('take');
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  await server.close();
  await upstream.close();
});
