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
