import { expect, test } from 'vitest';
import { chat } from '../support/server.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

const { vendors, server } = await scriptedVendors();

/** The second turn of a loop as LiteLLM 1.110 sends it with the prefix `openai/`: it has kept what it does not know of the first answer. */
test.each(['gpt-oss-120b', 'mistral-large-latest', 'gpt-4o'])('an answer that LiteLLM gives back is taken by each vendor (%s)', async (model) => {
  const call = { id: 'call00001', type: 'function', function: { name: 'work', arguments: '{"text":"b"}' } };
  const messages = [
    { role: 'user', content: 'use the tool work with {"text":"b"}' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [call],
      function_call: null,
      provider_specific_fields: { refusal: null, reasoning: 'The user wants something.' },
    },
    { role: 'tool', tool_call_id: call.id, name: 'work', content: 'read b' },
  ];
  const tools = [{ type: 'function', function: { name: 'work', parameters: { type: 'object', properties: { text: { type: 'string' } } } } }];
  const answer = await server.ask(chat, { model, messages, tools });
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'The tool said: read b' } }] });
  expect(vendors.requests.map(({ status }) => status)).toEqual([200]);
  expect(vendors.requests[0]?.text).not.toContain('provider_specific_fields');
});
