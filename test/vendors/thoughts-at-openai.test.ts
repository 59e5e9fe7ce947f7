import { expect, test } from 'vitest';
import { chat } from '../support/server.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

const { vendors, server } = await scriptedVendors();

test('thoughts of others in the history do not reach OpenAI, which is asked once', async () => {
  const history = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'ho', reasoning_content: 'Hm.' },
    { role: 'user', content: 'go on' },
  ];
  for (const model of ['gpt-4o', 'o3', 'azure-gpt-5']) {
    vendors.reset();
    const answer = await server.ask(chat, { model, messages: history });
    expect(answer.status).toBe(200);
    expect(vendors.requests.map(({ status, text }) => [status, text.includes('reasoning_content')])).toEqual([[200, false]]);
  }
});

test.each([false, true])(
  'encrypted reasoning that a client of the same API returns, with the id that it has here, is taken by OpenAI; streamed: %s',
  async (stream) => {
    const path = '/server/chatcompat/v1/responses';
    const asked = { model: 'gpt-5-on-responses', include: ['reasoning.encrypted_content'], store: false };
    const first = await (await server.ask(path, { ...asked, input: [{ role: 'user', content: 'hi' }], stream })).text();
    const { output } = stream ? JSON.parse(/event: response.completed\ndata: (.*)/.exec(first)![1]!).response : JSON.parse(first);
    expect(output[0]).toMatchObject({ type: 'reasoning', id: expect.stringMatching(/^rs_/), encrypted_content: expect.any(String) });
    vendors.reset();
    const second = await server.ask(path, { ...asked, input: [{ role: 'user', content: 'hi' }, ...output, { role: 'user', content: 'go on' }] });
    expect([second.status, vendors.requests.map(({ status }) => status)]).toEqual([200, [200]]);
    expect(vendors.requests[0]!.text).toContain(output[0].encrypted_content);
  },
);
