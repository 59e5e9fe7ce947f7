import { describe, expect, test } from 'vitest';
import { askFace, everyWay, type Face, spelled } from '../support/all-faces.ts';
import { ok, toolCalls } from '../support/fakes/upstream/index.ts';
import { administrate } from '../support/members.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Answers by a schema, of models that are known not to keep to schemas. */

const { upstream, server } = await scriptedServer(({ url }) => ({ yaml: everyWire({ url }, 'abilities: [tools]') }));

const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 1 } }, required: ['n'], additionalProperties: false };
const right = '{"n":1}';
const asked: Readonly<Record<Face, (strict?: boolean) => object>> = {
  chat: (strict) => ({ response_format: { type: 'json_schema', json_schema: { name: 's', schema, strict } } }),
  responses: (strict) => ({ text: { format: { type: 'json_schema', name: 's', schema, strict } } }),
  messages: () => ({ output_config: { format: { type: 'json_schema', schema } } }),
  gencompat: () => ({ generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } }),
};
const ask = (face: Face, stream: boolean, model: string, strict = true) => askFace(server, face, { model, content: 'hi', stream, more: asked[face](strict) });

/** The word for an answer that reached its limit, where the fake has one. */
const cutWords: Readonly<Record<string, string>> = { chat: 'length', messages: 'max_tokens', gemini: 'MAX_TOKENS' };

const stepsOf = async (requestId: string) =>
  (await administrate<{ steps: readonly object[] }>(server, 'GET', `/logs/${requestId}`).catch(() => undefined))?.steps;

describe.each(['chat', 'responses', 'messages', 'gemini'])('an answer by a schema of a model on the %s wire', (wire) => {
  test.each(everyWay)('is asked for once more where it does not conform, and both are booked (%s, streamed: %s)', async (face, stream) => {
    upstream.script(ok({ text: 'not this canary' }), ok({ text: right }));
    const answer = await ask(face, stream, wire);
    expect({ status: answer.status, text: answer.text, complete: answer.complete }).toEqual({ status: 200, text: right, complete: true });
    expect(answer.raw).not.toContain('canary');
    expect(upstream.requests).toHaveLength(2);
    await expect.poll(async () => (await stepsOf(answer.headers.get('x-request-id')!)) ?? [], { timeout: 30_000 }).toHaveLength(1);
  });

  test.each(everyWay)('is 502 where the second does not conform either, and nothing of it is shown (%s, streamed: %s)', async (face, stream) => {
    upstream.script(ok({ text: 'first canary' }), ok({ text: '{"n":0}' }));
    const answer = await ask(face, stream, wire);
    expect([answer.status, upstream.requests.length]).toEqual([502, 2]);
    expect(answer.raw).not.toContain('canary');
    const booked = { status: 502, end: 'upstream-failed', outputTokens: expect.toSatisfy((tokens: number) => tokens > 0) as number };
    await expect.poll(() => stepsOf(answer.headers.get('x-request-id')!), { timeout: 30_000 }).toMatchObject([booked]);
  });

  test.each(everyWay)('is passed on where it conforms, is cut or calls a tool (%s, streamed: %s)', async (face, stream) => {
    upstream.script(ok({ text: right }));
    expect((await ask(face, stream, wire)).text).toBe(right);
    expect(upstream.requests).toHaveLength(1);
    const cut = cutWords[wire];
    if (cut !== undefined) {
      upstream.script(ok({ text: '{"n":', finish: cut }));
      expect((await ask(face, stream, wire)).text).toBe('{"n":');
    }
    upstream.script(toolCalls([{ name: 't', json: '{}' }]));
    expect((await ask(face, stream, wire)).status).toBe(200);
    expect(upstream.requests).toHaveLength(cut === undefined ? 2 : 3);
  });

  test.each([
    ['chat', false],
    ['chat', true],
    ['responses', false],
    ['responses', true],
  ] as const)('is passed on with a warning where the client does not ask for strict (%s, streamed: %s)', async (face, stream) => {
    upstream.script(ok({ text: 'prose' }));
    const answer = await ask(face, stream, wire, false);
    expect([answer.status, answer.text, upstream.requests.length]).toEqual([200, 'prose', 1]);
    expect(answer.headers.get('x-dragoman-warnings')).toContain(`${spelled(face, 'response_format')}: the model is not known to keep to schemas`);
  });
});
