import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { askFace } from '../support/all-faces.ts';
import { whole } from '../support/fakes/upstream/answer.ts';
import { ok, startUpstream, type Behaviour, type Upstream } from '../support/fakes/upstream/index.ts';
import { startTestServer } from '../support/server.ts';

/** The blocks of docs/providers.md, each asked at a scripted upstream in place of its host. */

const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8');
const blocks = [...page.matchAll(/^## (.+)\n[^]*?```yaml\n([^]+?)```/gm)].map(([, title, yaml]) => ({ title: title!, yaml: yaml! }));

let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());

const message = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'x',
  content: [{ type: 'text', text: 'Hello.' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
};
const claude: Behaviour = {
  name: 'Claude',
  when: { path: /rawPredict/ },
  answer: () => whole(200, JSON.stringify(message), { 'content-type': 'application/json' }),
};

describe.each(blocks)('$title', ({ yaml }) => {
  test('answers with these settings', { timeout: 60_000 }, async () => {
    const settings = yaml.replaceAll(/https?:\/\/[^/"]+/g, upstream.url).replaceAll(/\$\{\w+\}/g, 'key');
    const server = await startTestServer({ yaml: `${settings}routing: { cooldownSeconds: 0 }\n` });
    try {
      for (const [model, { targets }] of Object.entries((parse(yaml) as { models: Record<string, { targets: readonly object[] }> }).models)) {
        upstream.reset();
        upstream.script(claude, ok());
        const answer = await askFace(server, 'chat', { model, content: 'hi', stream: false });
        expect({ model, status: answer.status, targets: targets.length > 0 }).toEqual({ model, status: 200, targets: true });
        if (!yaml.includes('http://127')) expect(upstream.requests[0]?.key ?? upstream.requests[0]?.headers['authorization']).toMatch(/key$/);
      }
    } finally {
      await server.close();
    }
  });
});
