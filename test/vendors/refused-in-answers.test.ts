import { expect, test } from 'vitest';
import { askFace, everyWay, type Face } from '../support/all-faces.ts';
import { always, ok, type Behaviour } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Servers that answer 200 before they read the request, and refuse it in the answer: as an error body, or as the first event of a stream. */
const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  chats: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k] }
models:
${Array.from({ length: 30 }, (_, at) => `  c${at}: { targets: [{ provider: claude }], limits: { output: 64000 } }\n`).join('')}  "*": { targets: [{ provider: chats }] }
routing: { cooldownSeconds: 0 }
`,
}));

type Body = Readonly<Record<string, unknown>>;

let count = 0;
const ask = (face: Face, model: string, more: object, stream: boolean) => askFace(server, face, { model, content: 'hi', stream, more });
const sent = () => upstream.requests.map(({ json }) => json as Body);

/** @param opening frames before the error of a stream */
const refusing = (refuses: (body: Body, path: string) => object | undefined, opening = ''): Behaviour =>
  always({
    name: 'refusing in the answer',
    answer(exchange) {
      const refused = refuses(exchange.request.json as Body, exchange.request.path);
      if (!refused) return ok().answer(exchange);
      const { stream } = exchange.request.json as Body;
      const type = stream ? 'text/event-stream' : 'application/json';
      const text = stream ? `${opening}event: error\ndata: ${JSON.stringify(refused)}\n\n` : JSON.stringify(refused);
      return { status: 200, headers: { 'content-type': type }, body: [text], framing: 'chunked', end: 'finish' };
    },
  });
const error = (message: string) => ({ error: { message, type: 'invalid_request_error', param: null, code: null } });
const sampling = (face: Face) => (face === 'gencompat' ? { generationConfig: { temperature: 0.5, topP: 0.5 } } : { temperature: 0.5, top_p: 0.5 });

test.each(everyWay.filter(([face]) => face !== 'chat'))(
  'fields that are refused so are left out one by one, and at once from then on (%s, stream %s)',
  async (face, stream) => {
    upstream.script(
      refusing((body) => {
        const field = ['temperature', 'top_p'].find((one) => body[one] !== undefined);
        return field === undefined ? undefined : error(`Unsupported parameter: '${field}' is not supported with this model.`);
      }),
    );
    const model = `m${count++}`;
    for (let round = 0; round < 2; round++) {
      const { status, complete, headers } = await ask(face, model, sampling(face), stream);
      expect([status, complete, headers.get('x-dragoman-warnings')]).toEqual([200, true, expect.stringMatching(/temperature: .*top_?p: /i)]);
    }
    expect(sent().map(({ temperature, top_p: topP }) => [temperature, topP])).toEqual([
      [0.5, 0.5],
      [undefined, 0.5],
      [undefined, undefined],
      [undefined, undefined],
    ]);
  },
);

test.each(everyWay)('tools that are refused so go to the Responses API (%s, stream %s)', async (face, stream) => {
  const message = 'Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Please use /v1/responses instead.';
  upstream.script(refusing(({ tools }, path) => (tools && path.includes('/chat/completions') ? error(message) : undefined)));
  const schema = { type: 'object', properties: {} };
  const tools = {
    chat: [{ type: 'function', function: { name: 'look', parameters: schema } }],
    responses: [{ type: 'function', name: 'look', parameters: schema }],
    messages: [{ name: 'look', input_schema: schema }],
    gencompat: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: schema }] }],
  }[face];
  const model = `m${count++}`;
  for (let round = 0; round < 2; round++) expect(await ask(face, model, { tools }, stream)).toMatchObject({ status: 200, complete: true });
  expect(upstream.requests.map(({ path }) => path)).toEqual(['/v1/chat/completions', '/v1/responses', '/v1/responses']);
});

test.each(everyWay.filter(([face]) => face !== 'messages'))(
  'a stream that has begun is no answer before its first word (%s, stream %s)',
  async (face, stream) => {
    const message = {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
    };
    const opening = `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message })}\n\n`;
    const said = '`temperature` and `top_p` cannot both be specified for this model. Please use only one.';
    upstream.script(refusing(({ temperature, top_p: topP }) => (temperature && topP ? { type: 'error', ...error(said) } : undefined), opening));
    expect(await ask(face, `c${count++}`, sampling(face), stream)).toMatchObject({ status: 200, complete: true });
    expect(upstream.requests).toHaveLength(2);
  },
);

test.each(everyWay)('a refusal that teaches nothing is the answer (%s, stream %s)', async (face, stream) => {
  upstream.script(refusing(() => error('The widget is broken.')));
  expect((await ask(face, `m${count++}`, sampling(face), stream)).status).toBe(400);
  expect(upstream.requests).toHaveLength(1);
});

test.each(['responses', 'messages', 'gencompat'] as const)('nothing is asked again once the answer spoke (%s)', async (face) => {
  const chunk = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'half' } }] };
  upstream.script(refusing(() => error("Unsupported parameter: 'temperature' is not supported with this model."), `data: ${JSON.stringify(chunk)}\n\n`));
  const { text, complete } = await ask(face, `m${count++}`, sampling(face), true);
  expect([text.includes('half'), complete, upstream.requests.length]).toEqual([true, false, 1]);
});
