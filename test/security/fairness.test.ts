/* What one user sends, or is answered, holds up nobody else: told by who is answered first, not by how long it takes. */
import { expect, test } from 'vitest';
import { always, on, ok, type Behaviour } from '../support/fakes/upstream/index.ts';
import { newMember, type Member } from '../support/members.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers: { fake: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] } }
models: { large: { targets: [{ provider: fake }] }, small: { targets: [{ provider: fake }] } }
`,
}));

const post = (member: Member, path: string, body: object) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${member.keys[0]}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** A request whose answer must conform to a schema. */
const asked = (member: Member, model: string, responseJsonSchema: object) =>
  post(member, `/server/gencompat/v1beta/models/${model}:generateContent`, {
    contents: [{ role: 'user', parts: [{ text: 'hello' }] }],
    generationConfig: { responseMimeType: 'application/json', responseJsonSchema },
  });

const after = (gate: Promise<void>, behaviour: Behaviour): Behaviour => ({
  name: 'after',
  async answer(exchange) {
    await gate;
    return behaviour.answer(exchange);
  },
});

/** Notes the order in which answers come. */
function race() {
  const order: string[] = [];
  const run = async (name: string, answer: Promise<Response>) => {
    const { status } = await answer.then(async (one) => (await one.arrayBuffer(), one));
    order.push(name);
    return status;
  };
  return { order, run };
}

const object = { type: 'object', required: ['a'] };

test('an answer of 5,000 line feeds after a code fence is validated and repaired, and others are answered meanwhile', async () => {
  const [one, other] = [await newMember(server), await newMember(server)];
  const gate = Promise.withResolvers<void>();
  const fence = `\`\`\`json${'\n'.repeat(5000)}x`;
  upstream.script(on({ model: 'large' }, ok({ text: fence })), on({ model: 'large' }, after(gate.promise, ok({ text: fence }))), on({ model: 'small' }, ok()));
  const { order, run } = race();
  const large = run('large', asked(one, 'large', object));
  await upstream.arrived(1);
  expect(await run('small', other.ask({ model: 'small', messages: [{ role: 'user', content: 'hello' }] }))).toBe(200);
  gate.resolve();
  expect(await large).toBe(502);
  expect(order).toEqual(['small', 'large']);
});

const text = (pattern: string) => ({ ...object, properties: { a: { type: 'string', pattern } } });

test.each<[string, object]>([
  ['a cubic pattern', text('^a*a*a*a*b$')],
  ['a pattern that could backtrack', text('^((a|a)+)+b$')],
  ['a long reference', { ...object, properties: { a: { $ref: `#/${'$defs/'.repeat(30)}` } } }],
  [
    'a chain that forks',
    {
      ...object,
      $defs: { b: { allOf: [{ $ref: '#/$defs/c' }, { $ref: '#/$defs/c' }] }, c: { anyOf: [{ $ref: '#/$defs/b' }] } },
      properties: { a: { $ref: '#/$defs/b' } },
    },
  ],
])('a schema of 250 bytes with %s does not delay the validation of answers for other users', { timeout: 120_000 }, async (_name, schema) => {
  expect(JSON.stringify(schema).length).toBeLessThanOrEqual(250);
  const [one, other] = [await newMember(server), await newMember(server)];
  const gate = Promise.withResolvers<void>();
  const large = ok({ text: JSON.stringify({ a: 'a'.repeat(20_000) }) });
  upstream.script(on({ model: 'large' }, always(after(gate.promise, large))), on({ model: 'small' }, after(gate.promise, ok({ text: '{"a":"b"}' }))));
  const { order, run } = race();
  const answers = Array.from({ length: 8 }, () => run('large', asked(one, 'large', schema)));
  await upstream.arrived(7);
  const small = run('small', asked(other, 'small', object));
  await upstream.arrived(8);
  gate.resolve();
  expect(await small).toBe(200);
  expect(new Set(await Promise.all(answers))).toEqual(new Set([502]));
  expect(order.indexOf('small')).toBeLessThan(8);
});

const figure = async (name: string) => Number(new RegExp(`^dragoman_${name} (\\d+)$`, 'm').exec(await (await fetch(`${server.url}/metrics`)).text())![1]);

test('large texts of a user without quota are counted in turn with small ones of other users', { timeout: 120_000 }, async () => {
  const [one, other] = [await newMember(server, { monthlyTokens: 0 }), await newMember(server)];
  const { order, run } = race();
  const counted = (member: Member, words: number) =>
    post(member, '/server/messages/v1/messages/count_tokens', { model: 'built-in', messages: [{ role: 'user', content: 'word and '.repeat(words) }] });
  const large = Array.from({ length: 3 }, () => run('large', counted(one, 1_200_000)));
  await expect.poll(() => figure('held_bytes'), { interval: 1, timeout: 60_000 }).toBeGreaterThan(3 * 2 * 10_000_000); // they have come, and are being counted
  expect(await run('small', counted(other, 3000))).toBe(200);
  expect(await Promise.all(large)).toEqual([200, 200, 200]);
  expect(order.indexOf('small')).toBeLessThan(3);
});

test('large texts are embedded in turn with small ones of other users', { timeout: 120_000 }, async () => {
  const [one, other] = [await newMember(server), await newMember(server)];
  const { order, run } = race();
  const embedded = (member: Member, count: number) =>
    post(member, '/server/chatcompat/v1/embeddings', { model: 'built-in-embedding', input: Array.from({ length: count }, (_, at) => `text ${at} of many`) });
  const large = Array.from({ length: 3 }, () => run('large', embedded(one, 100)));
  await expect.poll(() => figure('requests_in_flight'), { interval: 1 }).toBe(1 + 3);
  expect(await run('small', embedded(other, 1))).toBe(200);
  expect(await Promise.all(large)).toEqual([200, 200, 200]);
  expect(order.indexOf('small')).toBeLessThan(3);
});
