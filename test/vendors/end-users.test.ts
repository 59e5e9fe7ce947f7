import { describe, expect, test } from 'vitest';
import { ok, refusal } from '../support/fakes/upstream/index.ts';
import { askFace, type Face } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** The client's own user has a field on three wires, under other names. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

type Json = Readonly<Record<string, unknown>>;
const sent = () => upstream.requests.at(-1)!.json as Json;
const ask = (face: Face, model: string, more: object, headers: Readonly<Record<string, string>> = {}) => {
  upstream.script(ok());
  return askFace(server, face, { model, content: 'hi', stream: false, more, headers });
};

describe('the user of a client', () => {
  test.each(['chat', 'responses'])('of the messages interface is `user` on the %s wire', async (wire) => {
    const { status, headers } = await ask('messages', wire, { metadata: { user_id: 'owl' } });
    expect({ status, user: sent()['user'], warnings: headers.get('x-dragoman-warnings') }).toEqual({ status: 200, user: 'owl', warnings: null });
    expect(sent()).not.toHaveProperty('metadata');
  });

  test.each([
    ['chat', { user: 'owl' }],
    ['chat', { safety_identifier: 'owl' }],
    ['responses', { user: 'owl' }],
    ['responses', { safety_identifier: 'owl' }],
  ] as const)('of the %s interface, %j, is `metadata.user_id` on the messages wire', async (face, more) => {
    const { status, headers } = await ask(face, 'messages', more);
    expect({ status, metadata: sent()['metadata'] }).toEqual({ status: 200, metadata: { user_id: 'owl' } });
    expect(headers.get('x-dragoman-warnings')).not.toMatch(/user|identifier/);
  });

  test('costs no other field that has the same value its warning', async () => {
    const { headers } = await ask('chat', 'messages', { user: 'u1', prompt_cache_key: 'u1' });
    expect(headers.get('x-dragoman-warnings')).toMatch(/\bprompt_cache_key: /);
    const strict = await ask('chat', 'messages', { safety_identifier: 'u1', prompt_cache_key: 'u1' }, { 'x-dragoman-strict': 'true' });
    expect(strict).toMatchObject({ status: 400, raw: expect.stringContaining('prompt_cache_key') as string });
  });

  test('is carried as it is where the wire is the client’s own, or its sister', async () => {
    await ask('messages', 'messages', { metadata: { user_id: 'owl@example.com' } });
    expect(sent()['metadata']).toEqual({ user_id: 'owl@example.com' });
    await ask('chat', 'responses', { user: 'owl' });
    expect(sent()['user']).toBe('owl');
    await ask('responses', 'chat', { safety_identifier: 'owl' });
    expect(sent()).toMatchObject({ safety_identifier: 'owl' });
    expect(sent()).not.toHaveProperty('user');
  });

  test('has no place on the Gemini wire, which is said', async () => {
    expect((await ask('messages', 'gemini', { metadata: { user_id: 'owl' } })).headers.get('x-dragoman-warnings')).toContain('metadata');
    expect((await ask('chat', 'gemini', { user: 'owl' })).headers.get('x-dragoman-warnings')).toContain('user');
  });

  // Claude Code's names have 150 characters and more: looplj/axonhub#1669
  test.each(['chat', 'responses'])('whose name is too long for the %s wire is sent as a digest, always the same', async (wire) => {
    const name = `user_${'a'.repeat(150)}`;
    const { status, headers } = await ask('messages', wire, { metadata: { user_id: name } }, { 'x-dragoman-strict': 'true' });
    expect({ status, warnings: headers.get('x-dragoman-warnings') }).toEqual({ status: 200, warnings: expect.stringMatching(/^user: .*digest/) as string });
    const { user } = sent();
    expect(user).toMatch(/^[\da-f]{64}$/);
    await ask('messages', wire, { metadata: { user_id: name } });
    expect(sent()['user']).toBe(user);
  });

  test.each(['owl@example.com', '+49 123 4567890', 'o'.repeat(300)])('is sent as a digest where Claude refuses the name %s', async (user) => {
    const { status } = await ask('chat', 'messages', { user });
    expect({ status, metadata: sent()['metadata'] }).toEqual({ status: 200, metadata: { user_id: expect.stringMatching(/^[\da-f]{64}$/) as string } });
  });

  test('is left out, with a warning, where a provider does not know the field', async () => {
    upstream.script(refusal(400, { message: 'metadata: Extra inputs are not permitted' }));
    const first = await askFace(server, 'chat', { model: 'messages', content: 'hi', stream: false, more: { user: 'owl' } });
    expect({ status: first.status, warnings: first.headers.get('x-dragoman-warnings') }).toEqual({
      status: 200,
      warnings: expect.stringContaining('user: ') as string,
    });
    upstream.script(refusal(422, { message: "Unsupported parameter: 'user' is not supported with this model." }));
    const second = await askFace(server, 'messages', { model: 'chat', content: 'hi', stream: false, more: { metadata: { user_id: 'owl' } } });
    expect({ status: second.status, warnings: second.headers.get('x-dragoman-warnings') }).toEqual({
      status: 200,
      warnings: expect.stringContaining('user: ') as string,
    });
    expect(sent()).not.toHaveProperty('user');
  });
});

describe('metadata of a responses client', () => {
  const metadata = { order: '17' };

  test.each(['messages', 'gemini'])('has no place on the %s wire, which is said; the response has it, for a strict client too', async (wire) => {
    for (const headers of [{}, { 'x-dragoman-strict': 'true' }]) {
      const { status, raw, headers: given } = await ask('responses', wire, { metadata }, headers);
      expect({ status, warnings: given.get('x-dragoman-warnings') }).toEqual({
        status: 200,
        warnings: expect.stringContaining('metadata: the provider') as string,
      });
      expect(JSON.parse(raw)).toMatchObject({ metadata });
      expect(upstream.requests.at(-1)!.body.toString()).not.toContain('order');
    }
  });

  test.each(['chat', 'responses'])('arrives on the %s wire', async (wire) => {
    const { headers } = await ask('responses', wire, { metadata });
    expect([sent()['metadata'], headers.get('x-dragoman-warnings')]).toEqual([metadata, null]);
  });
});
