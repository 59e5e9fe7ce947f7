import { describe, expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Clients of the Gemini interface may leave out the ids of calls: the thoughts then return to the call of the same conversation and turn. */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- bodies are read as a provider reads them
type Any = any;
const tools = [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } } } }] }];
const question = { role: 'user', parts: [{ text: 'Look.' }] };
const result = { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'ok' } } }] };

async function answered(model: string, contents: readonly object[], stream: boolean, answer?: { thought: string; json: string }): Promise<object> {
  upstream.reset();
  upstream.script(always(answer ? ok({ thought: answer.thought, text: '', tools: [{ name: 'look', json: answer.json }] }) : ok({ text: 'Done.' })));
  const path = `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
  const reply = await server.ask(path, { contents, tools, generationConfig: { thinkingConfig: { thinkingBudget: 2000 }, maxOutputTokens: 9000 } });
  const text = await reply.text();
  expect([reply.status, text]).toEqual([200, expect.any(String)]);
  const bodies: Any[] = stream
    ? text
        .split('data: ')
        .slice(1)
        .map((frame): Any => JSON.parse(frame))
    : [JSON.parse(text)];
  const parts = bodies.flatMap(({ candidates }) => candidates[0].content.parts).filter(({ functionCall }) => functionCall);
  return { role: 'model', parts: parts.map(({ functionCall: { name, args } }) => ({ functionCall: { name, args } })) };
}

const thoughtsSent = (): string[] => {
  const { messages } = upstream.requests.at(-1)!.json as Any;
  return messages
    .filter(({ role }: Any) => role === 'assistant')
    .map(({ reasoning_content: said, content }: Any) => said ?? (Array.isArray(content) ? content : []).find(({ type }: Any) => type === 'thinking')?.thinking);
};

describe.each(['chat', 'messages'])('calls without ids, of a provider of %s', (wire) => {
  test.each([false, true])('of three rounds that say the same, streamed %s', async (stream) => {
    const contents: object[] = [question];
    for (const thought of ['First. ', 'Second. ', 'Third. '])
      contents.push(await answered(wire, contents, stream, { thought, json: '{ "city": "Rome" }' }), result);
    await answered(wire, contents, stream);
    expect(thoughtsSent()).toEqual(['First. ', 'Second. ', 'Third. ']);
  });

  test('of two conversations about two pictures', async () => {
    const about = (data: string) => ({ role: 'user', parts: [{ text: 'Look.' }, { inlineData: { mimeType: 'image/png', data } }] });
    const first = await answered(wire, [about('AAAA')], false, { thought: 'A cat. ', json: '{}' });
    await answered(wire, [about('BBBB')], false, { thought: 'A dog. ', json: '{}' });
    await answered(wire, [about('AAAA'), first, result], false);
    expect(thoughtsSent()).toEqual(['A cat. ']);
  });

  test('of two conversations whose calls differ', async () => {
    const first = await answered(wire, [question], false, { thought: 'To Rome. ', json: '{"city":"Rome"}' });
    await answered(wire, [question], false, { thought: 'To Oslo. ', json: '{"city":"Oslo"}' });
    await answered(wire, [question, first, result], false);
    expect(thoughtsSent()).toEqual(['To Rome. ']);
  });
});
