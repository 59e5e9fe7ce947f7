import { describe, expect, test } from 'vitest';
import { always, badRequest, ok, toolCalls, type Behaviour } from '../support/fakes/upstream/index.ts';
import { askFace, everyWay, faces, type Face } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Tools whose names, schemas or types a provider's API refuses. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

type Json = Readonly<Record<string, unknown>>;
const sent = (at = -1) => upstream.requests.at(at)!.json as Json;
const parameters = { type: 'object', properties: { at: { type: 'string' } } };

/** What a tool is called in the last request, whatever the wire. */
function namesSent(): readonly string[] {
  const tools = sent()['tools'] as readonly Json[];
  return tools.flatMap((tool) => {
    const declared = (tool['functionDeclarations'] ?? [tool['function'] ?? tool]) as readonly { readonly name: string }[];
    return declared.map(({ name }) => name);
  });
}

/** Calls the last of the tools that it is given. */
const callingLast: Behaviour = always({
  name: 'calling last',
  answer: (exchange) => {
    const { tools } = exchange.request.json as { readonly tools: readonly Json[] };
    const last = tools.at(-1)!;
    const declared = (last['functionDeclarations'] ?? [last['function'] ?? last]) as readonly { readonly name: string }[];
    return toolCalls([{ name: declared.at(-1)!.name, json: '{}' }]).answer(exchange);
  },
});

const declared: Readonly<Record<Face, (names: readonly string[]) => object>> = {
  chat: (names) => ({ tools: names.map((name) => ({ type: 'function', function: { name, parameters } })) }),
  responses: (names) => ({ tools: names.map((name) => ({ type: 'function', name, parameters })) }),
  messages: (names) => ({ tools: names.map((name) => ({ name, input_schema: parameters })) }),
  gencompat: (names) => ({ tools: [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: parameters })) }] }),
};

/** Models of `everyWire`, with the face of the same dialect and the names that their wires accept. */
const wires = [
  ['chat', 'chat', /^[a-zA-Z0-9_-]{1,64}$/],
  ['responses', 'responses', /^[a-zA-Z0-9_-]{1,64}$/],
  ['messages', 'messages', /^[a-zA-Z0-9_-]{1,128}$/],
  ['gemini', 'gencompat', /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/],
] as const;

const names = [`${'a'.repeat(100)}1`, `${'a'.repeat(100)}2`, 'files.read', 'files:read'];

describe.each(everyWay)('a %s client, streamed: %s', (face, stream) => {
  test.each(wires.filter(([, own]) => own !== face))('has its own names of tools where a provider of %s accepts others', async (model, _own, fits) => {
    upstream.script(callingLast);
    const answer = await askFace(server, face, { model, content: 'hi', stream, more: declared[face](names) });
    expect(answer).toMatchObject({ status: 200, complete: true });
    expect(answer.raw).toContain(JSON.stringify(names.at(-1)));
    expect(new Set(namesSent()).size).toBe(names.length);
    for (const name of namesSent()) expect(name).toMatch(fits);
  });
});

test.each(faces)('a choice and a history of %s have the names that the tools have', async (face) => {
  upstream.script(always(ok()));
  const name = names.at(-1)!;
  const model = face === 'chat' ? 'responses' : 'chat';
  const more: Readonly<Record<Face, object>> = {
    chat: {
      tool_choice: { type: 'function', function: { name } },
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name, arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    },
    responses: {
      tool_choice: { type: 'function', name },
      input: [
        { type: 'function_call', call_id: 'c', name, arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'x' },
      ],
    },
    messages: {
      tool_choice: { type: 'tool', name },
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name, input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] },
      ],
    },
    gencompat: {
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [name] } },
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [{ functionCall: { name, args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name, response: { output: 'x' } } }] },
      ],
    },
  };
  const answer = await askFace(server, face, { model, content: 'hi', stream: false, more: { ...declared[face]([name]), ...more[face] } });
  expect(answer.status).toBe(200);
  const [fit] = namesSent();
  const text = JSON.stringify(sent());
  expect(text).not.toContain(JSON.stringify(name));
  expect(text.split(JSON.stringify(fit)).length - 1).toBe(3);
});

test('a name that is too long is not taken for a conversation that is too long', async () => {
  const message = "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.";
  upstream.script(badRequest({ message, code: 'string_above_max_length' }));
  const answer = await askFace(server, 'chat', { model: 'chat', content: 'hi', stream: false, more: declared.chat(['x']) });
  expect({ status: answer.status, error: answer.error }).toEqual({ status: 400, error: 'invalid_value' });
});

test.each(['chat', 'responses'])('a schema without properties gets them for a provider of %s', async (model) => {
  upstream.script(ok());
  await askFace(server, 'messages', { model, content: 'hi', stream: false, more: { tools: [{ name: 'f', input_schema: { type: 'object' } }] } });
  expect(JSON.stringify(sent()['tools'])).toContain('"properties":{}');
});

test.each(['chat', 'responses'])('a strict tool with an optional property is not strict for a provider of %s', async (model) => {
  upstream.script(ok(), ok());
  const more = { tools: [{ name: 'f', strict: true, input_schema: { ...parameters, additionalProperties: false } }] };
  const { headers } = await askFace(server, 'messages', { model, content: 'hi', stream: false, more });
  expect(JSON.stringify(sent()['tools'])).not.toContain('"strict":true');
  expect(headers.get('x-dragoman-warnings')).toMatch(/^tools: strict/);
  const strict = await askFace(server, 'messages', { model, content: 'hi', stream: false, more, headers: { 'x-dragoman-strict': 'true' } });
  expect(strict.status).toBe(400);
});

// ——— what codex declares ———

const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: "*** Begin Patch"' };
const codex = {
  tools: [
    { type: 'function', name: 'exec', parameters, strict: false },
    { type: 'namespace', name: 'mcp__docs__', description: 'Docs.', tools: [{ type: 'function', name: 'search', parameters }] },
    { type: 'custom', name: 'apply_patch', description: 'Changes files.', format: grammar },
  ],
};
const history = [
  { type: 'message', role: 'user', content: 'hi' },
  { type: 'function_call', call_id: 'call_1', namespace: 'mcp__docs__', name: 'search', arguments: '{"at":"x"}' },
  { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: '*** Begin Patch' },
  { type: 'function_call_output', call_id: 'call_1', output: 'found' },
  { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
];

describe.each(['chat', 'messages', 'gemini'])('tools of codex at a provider of %s', (model) => {
  test.each([false, true])('are functions, and the answer names the tool of free text; streamed: %s', async (stream) => {
    upstream.script(
      always({
        name: 'calling apply_patch',
        answer: (exchange) => toolCalls([{ name: 'apply_patch', json: '{"input":"*** Begin Patch\\n+é"}' }]).answer(exchange),
      }),
    );
    const answer = await askFace(server, 'responses', { model, content: 'hi', stream, more: { ...codex, input: history } });
    expect(answer).toMatchObject({ status: 200, complete: true });
    expect(answer.headers.get('x-dragoman-warnings') ?? '').not.toContain('tool');
    expect(namesSent()).toEqual(['exec', 'mcp__docs__search', 'apply_patch']);
    const text = JSON.stringify(sent());
    expect(text).toContain('start: ');
    expect(text.split('"mcp__docs__search"').length - 1).toBeGreaterThan(1);
    expect(text).not.toMatch(/"namespace"|"custom"/);
    expect(text).toMatch(/\{\\?"input\\?":\\?"\*\*\* Begin Patch\\?"\}/);
    expect(answer.raw).toMatch(/"type":"custom_tool_call"[^}]*"name":"apply_patch","input":"\*\*\* Begin Patch\\n\+é"/);
    if (stream) expect(answer.raw).toContain('event: response.custom_tool_call_input.delta');
  });

  test('are named with their namespace in the answer', async () => {
    upstream.script(toolCalls([{ name: 'mcp__docs__search', json: '{"at":"y"}' }]));
    const answer = await askFace(server, 'responses', { model, content: 'hi', stream: false, more: codex });
    const { output } = JSON.parse(answer.raw) as { readonly output: readonly Json[] };
    expect(output).toContainEqual(expect.objectContaining({ type: 'function_call', name: 'search', namespace: 'mcp__docs__', arguments: '{"at":"y"}' }));
  });
});

test('a provider of the Responses API gets them as they are, until it refuses them', async () => {
  const refusing: Behaviour = always({
    name: 'refusing custom',
    answer: (exchange) => {
      const isRefused = JSON.stringify(exchange.request.json).includes('"custom"');
      const message = 'Failed to deserialize the JSON body into the target type: tools[2].type: unknown variant `custom`, expected `function`';
      return (isRefused ? badRequest({ message }) : toolCalls([{ name: 'mcp__docs__search', json: '{}' }])).answer(exchange);
    },
  });
  upstream.script(ok(), refusing);
  await askFace(server, 'responses', { model: 'responses', content: 'hi', stream: false, more: { ...codex, input: history } });
  expect(sent()).toMatchObject({ tools: codex.tools });
  expect((sent()['input'] as readonly Json[])[1]).toMatchObject({ namespace: 'mcp__docs__', name: 'search' });
  for (let round = 0; round < 2; round++) {
    const { raw, status } = await askFace(server, 'responses', { model: 'responses', content: 'hi', stream: false, more: { ...codex, input: history } });
    expect(status).toBe(200);
    expect(raw).toContain('"namespace":"mcp__docs__"');
  }
  expect(upstream.requests).toHaveLength(4);
  expect((sent()['input'] as readonly Json[]).map(({ type }) => type)).toEqual([
    'message',
    'function_call',
    'function_call',
    'function_call_output',
    'function_call_output',
  ]);
});
