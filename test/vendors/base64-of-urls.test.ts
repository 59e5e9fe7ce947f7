import { beforeEach, expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { always, body, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Google's SDK for Python writes bytes in the alphabet of base64 that is for URLs, as JSON of protocol buffers may have them. */

const { upstream, server } = await scriptedServer((one) => ({
  yaml: everyWire(one)
    .replace('models:', `  other: { dialect: gemini, baseUrl: "${one.url.replace('127.0.0.1', 'localhost')}/v1beta", apiKeys: [k] }\nmodels:`)
    .replace('routing:', '  other: { targets: [{ provider: other }] }\nrouting:'),
}));
beforeEach(() => upstream.reset());

const ask = (model: string, contents: readonly object[]) => askFace(server, 'gencompat', { model, content: 'Hello', stream: false, more: { contents } });

const bytes = Buffer.from('fbefbeffbfffbe', 'hex');

test.each(['chat', 'responses', 'messages', 'gemini'])(
  'an image and the image of a result are in the standard alphabet for a provider of %s',
  async (model) => {
    upstream.script(always(ok()));
    const inlineData = { mimeType: 'image/png', data: bytes.toString('base64url') };
    expect(inlineData.data).toMatch(/-.*_/);
    const { status } = await ask(model, [
      { role: 'user', parts: [{ text: 'Look.' }, { inlineData }] },
      { role: 'model', parts: [{ functionCall: { id: 'call_1', name: 'look', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'look', response: { output: 'Seen.' }, parts: [{ inlineData }] } }] },
    ]);
    const text = upstream.requests.at(-1)!.body.toString();
    expect([status, text.split(bytes.toString('base64')).length - 1, text.includes(inlineData.data)]).toEqual([200, 2, false]);
  },
);

test.each(['not-base64!', '_', 'a_b-c', 'a_b-c d_e', '%_=='])('%s is no base64, and stays as it is', async (data) => {
  upstream.script(always(ok()));
  await ask('gemini', [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }] }]);
  expect(upstream.requests.at(-1)!.body.toString()).toContain(`"data":"${data}"`);
});

test.each(['base64', 'base64url'] as const)('a signature that comes back as %s is that of its provider, and not given to another', async (encoding) => {
  const signature = Buffer.from(`${bytes.toString('latin1').repeat(12)}.${encoding}`, 'latin1');
  const parts = [{ functionCall: { id: 'call_1', name: 'look', args: {} }, thoughtSignature: signature.toString('base64') }];
  upstream.script(always(body(JSON.stringify({ candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }] }))));
  const user = { role: 'user', parts: [{ text: 'Look.' }] };
  await ask('gemini', [user]);
  const thoughtSignature = signature.toString(encoding);
  const history = [
    user,
    { role: 'model', parts: [{ ...parts[0], thoughtSignature }] },
    { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'look', response: { output: 'Seen.' } } }] },
  ];
  await ask('gemini', history);
  expect(upstream.requests.at(-1)!.body.toString()).toContain(thoughtSignature);
  await ask('other', history);
  expect(upstream.requests.at(-1)!.body.toString()).not.toContain(thoughtSignature);
});
