import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { always, ok } from '../../support/fakes/upstream/index.ts';
import { chat } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: '  "*": { targets: [{ provider: fake }] }\nrouting: { cooldownSeconds: 0 }\n',
}));

const message = { role: 'user', content: 'hello' };
const good = { model: 'gpt-4o-mini', messages: [message] };

/** Asks with these exact bytes. */
async function status(body: string | Buffer): Promise<number> {
  const answer = await server.ask(chat, undefined, { method: 'POST', body: typeof body === 'string' ? body : new Uint8Array(body) });
  const text = await answer.text();
  if (answer.status >= 400) expect(JSON.parse(text)).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } });
  return answer.status;
}

describe('JSON that would hurt', () => {
  const million = 1_000_000;
  test.each<[string, () => string]>([
    ['10 MB of [', () => '['.repeat(10 * million)],
    ['10 MB of {"a":', () => '{"a":'.repeat(2 * million)],
    ['five million zeros', () => `[${'0,'.repeat(5 * million)}0]`],
    ['900,000 keys', () => `{${Array.from({ length: 900_000 }, (_, at) => `"k${at}":1`).join(',')}}`],
    ['10 MB of digits', () => `{"model":${'9'.repeat(10 * million)}}`],
    ['a depth of 65', () => `${'['.repeat(65)}${']'.repeat(65)}`],
  ])(proves('I-02', '%s is refused and holds nobody up'), async (_what, body) => {
    const bytes = body();
    const asked = status(bytes);
    expect(await asked).toBe(400);
  });
});

describe('numbers', () => {
  test.each([
    ['temperature', '1e308'],
    ['temperature', '1e309'],
    ['temperature', '-0.001'],
    ['max_tokens', '9007199254740993'],
    ['max_tokens', '1e309'],
    ['max_tokens', '"5"'],
    ['max_tokens', '-1'],
    ['n', '1e9'],
    ['n', '0'],
    ['seed', '1.5'],
    ['top_logprobs', '21'],
    ['vendor_number', '1e309'],
  ])(proves('I-03', '%s %s is refused, and nothing goes upstream'), async (name, value) => {
    expect(await status(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}],"${name}":${value}}`)).toBe(400);
    expect(upstream.requests).toEqual([]);
  });

  test('1.0 is a whole number', async () => {
    expect(await status('{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}],"max_tokens":5.0}')).toBe(200);
  });
});

describe('keys', () => {
  test(proves('I-04', '__proto__ is refused wherever it stands'), async () => {
    for (const body of [
      '{"__proto__":{"a":1},"model":"gpt-4o-mini","messages":[]}',
      '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}],"metadata":{"__proto__":"x"}}',
    ]) {
      expect(await status(body)).toBe(400);
    }
    expect(({} as { a?: number }).a).toBeUndefined();
  });

  test(proves('I-04', 'constructor and toString are data'), async () => {
    upstream.script(always(ok()));
    expect(await status(JSON.stringify({ ...good, metadata: { constructor: 'x', toString: 'y' } }))).toBe(200);
    expect(upstream.requests[0]?.json).toMatchObject({ metadata: { constructor: 'x', toString: 'y' } });
  });

  test.each(['"model":"a"', '"mod\\u0065l":"a"', '"max_tokens":1,"max_tokens":2', '"stream":true,"stream":false'])(
    proves('I-05', 'a key given twice is refused: %s'),
    async (twice) => {
      expect(await status(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}],${twice}}`)).toBe(400);
      expect(upstream.requests).toEqual([]);
    },
  );
});

describe('characters', () => {
  test.each<[string, Buffer]>([
    ['a byte order mark', Buffer.from(`\uFEFF${JSON.stringify(good)}`)],
    ['UTF-16', Buffer.from(JSON.stringify(good), 'utf16le')],
    ['a broken sequence', Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xc3, 0x28]), Buffer.from('","messages":[]}')])],
    ['an overlong one', Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('","messages":[]}')])],
  ])(proves('I-07', '%s is refused'), async (_what, body) => {
    expect(await status(body)).toBe(400);
  });

  test(proves('I-07', 'NUL, lone surrogates, right-to-left marks and dragons arrive upstream as they were sent'), async () => {
    upstream.script(always(ok()));
    const content = 'a\u0000b \u202Eabc 🐉 e\u0301\u0301\u0301';
    expect(await status(JSON.stringify({ ...good, messages: [{ role: 'user', content }] }))).toBe(200);
    expect((upstream.requests[0]!.json as typeof good).messages[0]?.content).toBe(content);
    expect(await status('{"model":"gpt-4o-mini","messages":[{"role":"user","content":"\\ud800"}]}')).toBe(200);
    expect((upstream.requests[1]!.json as typeof good).messages[0]?.content).toBe('\ud800');
  });
});

describe('names that become part of a request upstream', () => {
  test.each([
    '../../etc',
    'a/../b',
    '%2e%2e%2f',
    'a#b',
    'a?x=1',
    'evil@host',
    '//evil',
    'http://evil/',
    'a\r\nx-evil: 1',
    'a\\b',
    '．．／',
    'm'.repeat(300),
    '\u0000',
  ])(proves(['I-21', 'I-19'], 'the model %j changes neither address nor headers'), async (model) => {
    expect([200, 400, 404]).toContain(await status(JSON.stringify({ ...good, model })));
    for (const { path, headers } of upstream.requests) {
      expect(path).toBe('/v1/chat/completions');
      expect(headers['x-evil']).toBeUndefined();
    }
    expect(upstream.mishaps).toEqual([]);
  });
});

describe('shapes', () => {
  const deep = (depth: number): object => (depth === 0 ? {} : { properties: { a: deep(depth - 1) } });
  test.each<[string, object, string]>([
    ['messages of numbers', { messages: [1] }, 'messages[0]'],
    ['a content of numbers', { messages: [{ role: 'user', content: 7 }] }, 'messages[0].content'],
    ['a part without type', { messages: [{ role: 'user', content: [{}] }] }, 'messages[0].content[0].type'],
    ['an image without address', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] }, 'messages[0].content[0].image_url.url'],
    ['a tool answer to nothing', { messages: [message, { role: 'tool', tool_call_id: 'x', content: 'y' }] }, 'messages[1].tool_call_id'],
    ['a tool_choice of a number', { tool_choice: 5 }, 'tool_choice'],
    ['a tool without type', { tools: [{ function: { name: 'x' } }] }, 'tools[0].type'],
    ['a JSON Schema too deep [I-13]', { tools: [{ type: 'function', function: { name: 'x', parameters: { type: 'object', ...deep(100) } } }] }, ''],
    ['an unknown reasoning effort', { reasoning_effort: 'some' }, 'reasoning_effort'],
  ])(proves('I-17', '%s is refused with the path of the field'), async (_what, more, field) => {
    const answer = await server.ask(chat, { ...good, ...more });
    expect(answer.status).toBe(400);
    const { error } = (await answer.json()) as { error: { param: string | null; message: string } };
    if (field) expect(error.param).toBe(field);
  });

  test(proves('I-13', 'a schema that points elsewhere is carried, and nothing is fetched'), async () => {
    upstream.script(always(ok()));
    const parameters = { type: 'object', $ref: `${upstream.url}/canary` };
    expect(await status(JSON.stringify({ ...good, tools: [{ type: 'function', function: { name: 'x', parameters } }] }))).toBe(200);
    expect(upstream.requests.map(({ method }) => method)).toEqual(['POST']);
  });
});

test(proves('I-01', 'whatever is sent, the answer is no 5xx, and in the dialect'), async () => {
  upstream.script(always(ok()));
  const json = fc.jsonValue({ maxDepth: 3 });
  const field = fc.constantFrom(
    'model',
    'messages',
    'temperature',
    'max_tokens',
    'n',
    'stop',
    'tools',
    'tool_choice',
    'response_format',
    'stream',
    'stream_options',
    'metadata',
    'logit_bias',
    'user',
    'seed',
    'unknown',
  );
  await fc.assert(
    fc.asyncProperty(field, json, async (name, value) => {
      expect(await status(JSON.stringify({ ...good, [name]: value }))).toBeLessThan(500);
    }),
    { numRuns: 400 },
  );
});
