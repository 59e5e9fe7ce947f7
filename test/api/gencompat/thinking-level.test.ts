import { expect, test } from 'vitest';
import { always, ok } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const config = 'generationConfig';
const ask = (model: string, thinkingLevel: string, headers: Record<string, string> = {}, name = config, inner = 'thinkingConfig', member = 'thinkingLevel') => {
  upstream.script(always(ok()));
  const body = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], [name]: { [inner]: { [member]: thinkingLevel } } };
  return server.ask(`/server/gencompat/v1beta/models/${model}:generateContent`, body, { headers });
};
const field = 'generationConfig.thinkingConfig.thinkingLevel';

test.each(['chat', 'responses', 'messages'])(
  'a thinking level that the interface does not have is a warning with a provider of %s, and 400 where the client is strict',
  async (model) => {
    const lax = await ask(model, 'ultra');
    expect([lax.status, lax.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining(`${field}: `)]);
    const strict = await ask(model, 'ultra', { 'x-dragoman-strict': 'true' });
    expect([strict.status, await strict.text()]).toEqual([400, expect.stringContaining(field)]);
    const spelled = await ask(model, 'ultra', { 'x-dragoman-strict': 'true' }, 'generation_config', 'thinking_config', 'thinking_level');
    expect([spelled.status, await spelled.text()]).toEqual([400, expect.stringContaining('generation_config.thinking_config.thinking_level')]);
  },
);

test.each(['HIGH', 'minimal', 'THINKING_LEVEL_UNSPECIFIED'])('%s is none', async (level) => {
  const answer = await ask('chat', level);
  expect([answer.status, answer.headers.get('x-dragoman-warnings') ?? '']).toEqual([200, expect.not.stringContaining('thinkingLevel')]);
});

test('a provider of the same interface is sent it as it came', async () => {
  const answer = await ask('gemini', 'ultra', { 'x-dragoman-strict': 'true' });
  expect(answer.status).toBe(200);
  expect(upstream.requests.at(-1)!.json).toMatchObject({ generationConfig: { thinkingConfig: { thinkingLevel: 'ultra' } } });
});
