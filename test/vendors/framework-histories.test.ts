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

/** As `@openai/agents` 0.20 writes the history of a run. */
test.each([{ refusal: null }, {}])('an answer whose text has a role, as OpenAI’s agents write it, is taken by OpenAI (%j)', async (more) => {
  vendors.reset();
  const content = [{ type: 'text', text: 'The tool said: read b', role: 'assistant', ...more }];
  const answer = await server.ask(chat, {
    model: 'gpt-4o',
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: 'and hello' },
    ],
  });
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'You said: and hello' } }] });
  expect(vendors.requests[0]?.text.match(/"role"/g)).toHaveLength(3); // one a message
});

/** As `@openai/agents` 0.20 writes the history of a run that was streamed. */
test.each(['gpt-4o', 'claude-opus-4-6'])('an answer whose text has annotations, as OpenAI’s agents write it, is taken by %s', async (model) => {
  vendors.reset();
  const content = [{ type: 'text', text: 'The tool said: read b', annotations: [] }];
  const answer = await server.ask(chat, {
    model,
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: 'and hello' },
    ],
  });
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'You said: and hello' } }] });
  expect(answer.headers.get('x-dragoman-warnings')).toBeNull();
  expect(vendors.requests[0]?.text).not.toContain('annotations');
});
