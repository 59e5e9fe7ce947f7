import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { askFace } from '../support/all-faces.ts';
import { whole } from '../support/fakes/upstream/answer.ts';
import { ok, startUpstream, vectors, type Behaviour, type Upstream } from '../support/fakes/upstream/index.ts';
import { startTestServer } from '../support/server.ts';

/** The blocks of docs/providers.md, each asked at a scripted upstream in place of its host. */

const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8');
const blocks = [...page.matchAll(/^## (.+)\n[^]*?```yaml\n([^]+?)```/gm)].map(([, title, yaml]) => ({ title: title!, yaml: yaml! }));

interface ModelSettings {
  readonly targets: readonly object[];
  readonly kind?: string;
}

const modelsOf = (yaml: string) => (parse(yaml) as { readonly models: Readonly<Record<string, ModelSettings>> }).models;

/** The addresses of the table. */
const addresses = [...page.matchAll(/^\| (.+) \| `(https?:\/\/[^`]+)`.*\|$/gm)].map(([, name, baseUrl]) => ({ name: name!, baseUrl: baseUrl! }));

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
  test('answers with these settings', { timeout: 120_000 }, async () => {
    const settings = yaml.replaceAll(/https?:\/\/[^/"]+/g, upstream.url).replaceAll(/\$\{\w+\}/g, 'key');
    const server = await startTestServer({ yaml: `${settings}routing: { cooldownSeconds: 0 }\n` });
    try {
      for (const [model, { targets, kind }] of Object.entries(modelsOf(yaml))) {
        upstream.reset();
        upstream.script(claude, kind === 'embedding' ? vectors() : ok());
        const { status } =
          kind === 'embedding'
            ? await server.ask('/server/chatcompat/v1/embeddings', { model, input: 'hi' })
            : await askFace(server, 'chat', { model, content: 'hi', stream: false });
        expect({ model, status, targets: targets.length > 0 }).toEqual({ model, status: 200, targets: true });
        if (!yaml.includes('http://127')) expect(upstream.requests[0]?.key ?? upstream.requests[0]?.headers['authorization']).toMatch(/key$/);
      }
    } finally {
      await server.close();
    }
  });
});

test('each address of the table is asked where its chat completions are', { timeout: 120_000 }, async () => {
  expect(addresses.length).toBeGreaterThan(15);
  const path = (baseUrl: string) => new URL(baseUrl).pathname.replace(/\/$/, '');
  const providers = addresses.map(({ baseUrl }, at) => `  p${at}: { dialect: openai-chat, baseUrl: "${upstream.url}${path(baseUrl)}", apiKeys: [key] }\n`);
  const models = addresses.map((_, at) => `  m${at}: { targets: [{ provider: p${at} }] }\n`);
  const server = await startTestServer({ yaml: `providers:\n${providers.join('')}models:\n${models.join('')}` });
  try {
    for (const [at, { name, baseUrl }] of addresses.entries()) {
      upstream.reset();
      upstream.script(ok());
      const { status } = await askFace(server, 'messages', { model: `m${at}`, content: 'hi', stream: false });
      expect({ name, status, path: upstream.requests[0]?.path }).toEqual({ name, status: 200, path: `${path(baseUrl)}/chat/completions` });
    }
  } finally {
    await server.close();
  }
});
