import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { always, on, tooMany } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const chat = '/server/chatcompat/v1/chat/completions';
const { server, upstream } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  one: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [a] }
  two: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [b] }
models:
  priced: { targets: [{ provider: one }, { provider: two }], price: { input: 1000, output: 1000 }, aliases: [nick] }
  free-of-price: { targets: [{ provider: one }] }
  "*": { targets: [{ provider: one }] }
plans: { narrow: { requestsPerMinute: 1 } }
cache: { priced: { ttlSeconds: 600 } }
`,
}));

const ask = async (model: string, content: string, headers: Record<string, string> = {}) => {
  const answer = await server.ask(chat, { model, messages: [{ role: 'user', content }], stream: false }, { headers });
  await answer.text();
  return answer.status;
};
const metrics = async () => (await server.ask('/metrics')).text();
/** The values of a metric by its labels. */
const valuesOf = (text: string, name: string) =>
  Object.fromEntries(Array.from(text.matchAll(new RegExp(`^${name}\\{(.*)\\} (.*)$`, 'gm')), ([, labels, value]) => [labels, Number(value)]));

test('calls are counted with tokens by kind, cost, time to the first token, attempts, cache and refusals by limit', async () => {
  upstream.script(always(on({ key: 'a', model: 'priced' }, tooMany())));
  expect(await ask('priced', 'first')).toBe(200); // at the second provider
  expect(await ask('nick', 'first')).toBe(200);
  expect(await ask('priced', 'first')).toBe(200); // from the cache
  expect(await ask('free-of-price', 'second')).toBe(200);
  for (let at = 0; at < 3; at++) expect(await ask(`client-chose-${at}`, 'third')).toBe(200);
  const user = (await (await server.ask('/server/admin/users', { email: 'ada@example.org', plan: 'narrow' })).json()) as { id: number };
  const { key } = (await (await server.ask(`/server/admin/users/${user.id}/keys`, { name: 'k' })).json()) as { key: string };
  const authorization = `Bearer ${key}`;
  expect([await ask('free-of-price', 'a', { authorization }), await ask('free-of-price', 'a', { authorization })]).toEqual([200, 429]);

  const text = await metrics();
  const tokens = valuesOf(text, 'dragoman_tokens_total');
  expect(tokens['provider="two",model="priced",kind="input"']).toBeGreaterThan(0);
  expect(tokens['provider="two",model="priced",kind="output"']).toBeGreaterThan(0);
  expect(valuesOf(text, 'dragoman_cost_usd_total')['provider="two",model="priced"']).toBeGreaterThan(0);
  expect(valuesOf(text, 'dragoman_unpriced_calls_total')).toEqual({ 'provider="one",model="free-of-price"': 2, 'provider="one",model="other"': 3 });
  expect(valuesOf(text, 'dragoman_calls_total')['provider="one",model="other",end="completed"']).toBe(3);
  expect(valuesOf(text, 'dragoman_first_token_seconds_count')['provider="one",model="other"']).toBe(3);
  const attempts = valuesOf(text, 'dragoman_attempts_total');
  for (const labels of ['provider="one",result="rate-limited"', 'provider="two",result="ok"']) expect(attempts[labels]).toBeGreaterThan(0);
  expect(Object.values(valuesOf(text, 'dragoman_cache_hits_total'))).toEqual([1]);
  expect(valuesOf(text, 'dragoman_limit_refusals_total')).toEqual({ 'limit="requests"': 1 });
  expect(text).toContain('dragoman_targets_cooling{provider="one"} 1');
  expect(text).not.toContain('client-chose'); // what a client writes is no label
});

test('every metric of the dashboard and of the alert rules is there', async () => {
  const text = await metrics();
  for (const file of ['deploy/grafana/dragoman.json', 'deploy/prometheus/alerts.yml', 'deploy/README.md']) {
    const written = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const names = new Set(Array.from(written.matchAll(/\b(?:dragoman_[a-z_]+[a-z]|process_[a-z_]+[a-z])\b/g), ([name]) => name.replace(/_bucket$/, '')));
    expect(names.size).toBeGreaterThan(5);
    for (const name of names) expect(text, `${file}: ${name}`).toMatch(new RegExp(`^# TYPE ${name} `, 'm'));
  }
});
