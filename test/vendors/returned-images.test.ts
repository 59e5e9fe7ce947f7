/* Images of the gateway's own answers, which clients return with the conversation. */
import { expect, test } from 'vitest';
import { quirksAt } from '#providers/google/models';
import { gemini } from '#dialects/gemini/index';
import { chat } from '#dialects/openai/chat/index';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { always, ok, on, stream as pieces } from '../support/fakes/upstream/index.ts';

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const data = 'iVBORw0KGgoA';
const parts = [{ text: 'pic' }, { inlineData: { mimeType: 'image/png', data } }];
const drawn = on(
  {},
  {
    name: 'drawn',
    answer: () => ({
      ...pieces([JSON.stringify({ candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] })]),
      headers: { 'content-type': 'application/json' },
    }),
  },
);
const more = { role: 'user', content: 'more' } as const;

interface Answered {
  readonly choices: readonly { readonly message: object }[];
  readonly output: readonly object[];
}

const first = async (path: string, body: object): Promise<Answered> => {
  upstream.script(drawn);
  return (await server.ask(path, body)).json() as Promise<Answered>;
};
const second = async (path: string, body: object) => {
  upstream.script(always(ok()));
  const answer = await server.ask(path, body, { headers: { 'x-dragoman-strict': 'true' } });
  return { status: answer.status, text: await answer.text(), sent: upstream.requests.at(-1) };
};

const chats = '/v1/chat/completions';
const responses = '/v1/responses';

async function returned(face: 'chat' | 'responses', model: string) {
  upstream.reset();
  if (face === 'chat') {
    const { choices } = await first(chats, { model: 'gemini', messages: [more] });
    return second(chats, { model, messages: [more, choices[0]!.message, more] });
  }
  const { output } = await first(responses, { model: 'gemini', input: [more], store: false });
  return second(responses, { model, input: [more, ...output, more], store: false });
}

test.each(['chat', 'responses'] as const)('a client of %s returns an image to Gemini as a part of the model', async (face) => {
  const { status, sent } = await returned(face, 'gemini');
  expect(status).toBe(200);
  expect(sent?.json).toMatchObject({ contents: [{ role: 'user' }, { role: 'model', parts }, { role: 'user' }] });
});

test.each(['messages', 'responses'])('a strict client of chat is told that a provider of %s takes none', async (model) => {
  const { status, text } = await returned('chat', model);
  expect(status).toBe(400);
  expect(text).toContain("image: the provider's API accepts none in an assistant message");
});

test('providers of the same interface get it as their clients wrote it', async () => {
  const toChat = await returned('chat', 'chat');
  expect(toChat.sent?.json).toMatchObject({ messages: [{}, { images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }] }, {}] });
  const toResponses = await returned('responses', 'responses');
  expect(JSON.stringify(toResponses.sent?.json)).toContain(`"type":"image_generation_call","status":"completed","result":"${data}"`);
});

test('members beside an image stay with it, and what is no list of images is carried as it is', () => {
  const sent = (images: unknown) => {
    const call = chat.decodeRequest({ model: 'm', messages: [more, { role: 'assistant', content: 'pic', images }, more] }, undefined);
    return (chat.encodeRequest(call, 'm').body['messages'] as readonly object[])[1];
  };
  const images = [{ index: 0, type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }];
  expect(sent(images)).toEqual({ role: 'assistant', content: 'pic', images });
  expect(sent(['no image'])).toEqual({ role: 'assistant', content: 'pic', images: ['no image'] });
});

test('an image that no model of Google has signed is sent with the placeholder, where the models want a signature', () => {
  const images = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }];
  const call = chat.decodeRequest({ model: 'm', messages: [more, { role: 'assistant', content: 'pic', images }, more] }, undefined);
  const contents = (model: string) => gemini.encodeRequest(call, model, quirksAt('google', model)).body['contents'];
  expect(contents('gemini-3-pro-image')).toMatchObject([
    {},
    { parts: [{ text: 'pic' }, { inlineData: { data }, thoughtSignature: 'skip_thought_signature_validator' }] },
    {},
  ]);
  expect(JSON.stringify(contents('gemini-2.5-flash-image'))).not.toContain('thoughtSignature');
});
