/* What outsiders wrote is in no line of the log, also where it could not be read. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openLog } from '../../src/telemetry/log.ts';
import { ok, startUpstream } from '../support/fakes/upstream/index.ts';
import { chat, startTestServer } from '../support/server.ts';

const secret = 'swordfish';

/** A log that keeps what it is told. */
function keptLog() {
  const lines: string[] = [];
  const keep = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, msg: message }));
  return { lines, log: { ...openLog('silent'), level: () => {}, debug: keep, info: keep, warn: keep, error: keep, fatal: keep } };
}

test('the answer of a check that cannot be read, which may repeat the prompt, is not quoted in the log', async () => {
  const service = createServer((message, response) => {
    message.resume();
    response.end(secret);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void service.close());
  await once(service, 'listening');
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const { lines, log } = keptLog();
  const server = await startTestServer({
    upstream: upstream.url,
    log,
    yaml: `
  judge: { targets: [{ provider: fake, model: judge }] }
  omni: { kind: moderation, targets: [{ provider: fake, model: omni }] }
  served: { targets: [{ provider: fake }] }
  judged: { targets: [{ provider: fake }] }
  moderated: { targets: [{ provider: fake }] }
guard:
  checks:
    - { name: service, when: [before], kind: http, url: "http://127.0.0.1:${(service.address() as AddressInfo).port}/", action: deny, models: [served] }
    - { name: judge, when: [before], kind: moderation, model: judge, action: deny, models: [judged] }
    - { name: omni, when: [before], kind: moderation, model: omni, action: deny, models: [moderated] }
`,
  });
  onTestFinished(server.close);
  for (const model of ['served', 'judged', 'moderated']) {
    upstream.script(ok({ text: `{${secret}}` }));
    const answer = await server.ask(chat, { model, messages: [{ role: 'user', content: secret }] });
    expect([answer.status, (await answer.text()).includes(secret)]).toEqual([502, false]);
    upstream.reset();
  }
  await expect.poll(() => lines.filter((line) => line.includes('no request or answer passes without it')).length).toBe(3);
  expect(lines.filter((line) => line.includes(secret))).toEqual([]);
});
