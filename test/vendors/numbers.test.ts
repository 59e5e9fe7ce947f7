import { describe, expect, test } from 'vitest';
import { always, body, ok, toolCalls, type Behaviour } from '../support/fakes/upstream/index.ts';
import { requestOf, type Face } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Numbers that JavaScript would write differently. */
const written = '{"id":12345678901234567890,"price":1.10,"list":[1.0,{"x":-0.50}]}';

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const schema = { type: 'object', properties: {} };
const user = 'Look it up.';

/** A conversation with a tool call and its result, in the words of each interface: `ARGUMENTS` stands for the arguments as JSON. */
const conversations: Readonly<Record<Face, object>> = {
  chat: {
    messages: [
      { role: 'user', content: user },
      { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: 'ARGUMENTS-TEXT' } }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'RESULT-TEXT' },
    ],
    tools: [{ type: 'function', function: { name: 'look', parameters: schema } }],
  },
  responses: {
    input: [
      { role: 'user', content: user },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: 'ARGUMENTS-TEXT' },
      { type: 'function_call_output', call_id: 'call_1', output: 'RESULT-TEXT' },
    ],
    tools: [{ type: 'function', name: 'look', parameters: schema }],
  },
  messages: {
    messages: [
      { role: 'user', content: user },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: 'ARGUMENTS' }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'RESULT-TEXT' }] },
    ],
    tools: [{ name: 'look', input_schema: schema }],
  },
  gencompat: {
    contents: [
      { role: 'user', parts: [{ text: user }] },
      { role: 'model', parts: [{ functionCall: { id: 'call_1', name: 'look', args: 'ARGUMENTS' } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'look', response: 'ARGUMENTS' } }] },
    ],
    tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: schema }] }],
  },
};

const filled = (json: string) => json.replaceAll(/"(?:ARGUMENTS|RESULT)-TEXT"/g, JSON.stringify(written)).replaceAll('"ARGUMENTS"', written);

async function ask(face: Face, model: string, stream = false, pad = '') {
  const { path, body: asked } = requestOf(face, { model, content: '', stream, more: conversations[face] });
  const json = filled(JSON.stringify(asked)).replace(user, user + pad);
  const answer = await server.ask(path, json);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(text);
  return text;
}

const faces: readonly Face[] = ['chat', 'responses', 'messages', 'gencompat'];
const wires = ['chat', 'responses', 'messages', 'gemini'];
const ways = faces.flatMap((face) => wires.map((wire) => [face, wire] as const));

/** What went upstream, with JSON texts in it unquoted. */
const sent = () => upstream.requests[0]!.body.toString().replaceAll('\\"', '"');

describe('numbers in the history', () => {
  test.each(ways)('of %s reach a provider of %s as they were written', async (face, wire) => {
    upstream.script(always(ok()));
    await ask(face, wire);
    expect(sent().split(written)).toHaveLength(3); // in the call, and in its result
  });

  test.each(ways.filter(([face]) => face === 'messages' || face === 'gencompat'))(
    'of a large request of %s reach a provider of %s, too',
    async (face, wire) => {
      upstream.script(always(ok()));
      await ask(face, wire, false, 'x'.repeat(1_500_000));
      expect(sent().split(written)).toHaveLength(3);
    },
  );

  test('of a result reach Gemini as text, unless they came as an object', async () => {
    upstream.script(always(ok()));
    await ask('chat', 'gemini');
    const { contents } = upstream.requests[0]!.json as { contents: { parts: { functionResponse?: { response: object } }[] }[] };
    expect(contents.at(-1)?.parts[0]?.functionResponse?.response).toEqual({ output: written });
  });
});

describe('numbers in the arguments of an answer', () => {
  const gemini = (more = '') =>
    `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"look","args":${written}}}]},"finishReason":"STOP","index":0,"avgLogprobs":-0.50}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}${more}}`;
  const messages = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":${written}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`;
  const event = (json: string): Behaviour => body(`data: ${json}\n\n`, 'text/event-stream');
  const said = (text: string) => text.replaceAll('\\"', '"').replaceAll('\\\\', '\\');

  test.each(faces)('of Gemini reach %s as they were written', async (face) => {
    upstream.script(body(gemini()), event(gemini()), body(gemini(`,"pad":"${'x'.repeat(1_500_000)}"`)));
    expect(said(await ask(face, 'gemini'))).toContain(written);
    expect(said(await ask(face, 'gemini', true))).toContain(written);
    expect(said(await ask(face, 'gemini'))).toContain(written);
  });

  test.each(faces)('of Claude reach %s as they were written', async (face) => {
    upstream.script(body(messages), body(messages), body(messages.replace('"m"', `"m","pad":"${'x'.repeat(1_500_000)}"`)));
    expect(said(await ask(face, 'messages'))).toContain(written);
    expect(said(await ask(face, 'messages', true))).toContain(written);
    expect(said(await ask(face, 'messages'))).toContain(written);
  });

  test.each(faces)('of a chat completion reach %s as they were written', async (face) => {
    const chat = JSON.stringify({
      id: '1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          message: { role: 'assistant', content: null, tool_calls: [{ id: 'call_9', type: 'function', function: { name: 'look', arguments: written } }] },
        },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
    upstream.script(body(chat));
    expect(said(await ask(face, 'chat'))).toContain(written);
  });
});

test.each(['chat', 'responses'])(
  'numbers in calls of a model of %s are as it wrote them in both forms of the native interface, whole and streamed',
  async (wire) => {
    upstream.script(always(toolCalls([{ name: 'look', json: written }])));
    for (const streaming of [false, true]) {
      const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }];
      const answer = await server.ask('/server/query', { message: user, model: wire, tools, streaming });
      const text = (await answer.text()).split('@|@sep@|@').at(-1)!;
      expect(text).toContain(`"arguments":${JSON.stringify(written)}`);
      expect(text).toContain(`"arguments":${written}`);
    }
  },
);
