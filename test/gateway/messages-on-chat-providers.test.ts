import { describe, expect, test } from 'vitest';
import { badRequest, ok } from '../support/fakes/upstream/index.ts';
import { look, messagesServer, request } from '../support/messages-server.ts';

const here = await messagesServer();

describe('a provider of the chat completions API', () => {
  test('receives system, tools, images and tool results in its own form, and the answer names the ignored fields', async () => {
    here.upstream.script(ok());
    const { headers } = await here.whole({
      model: 'gpt-x',
      max_tokens: 4000,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      stop_sequences: ['END'],
      tools: [look],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'enabled', budget_tokens: 2048 },
      top_k: 5,
      metadata: { user_id: 'u' },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'x', signature: 'y' },
            { type: 'redacted_thinking', data: 'z' },
            { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'it' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a cat' },
            { type: 'text', text: 'And now?' },
          ],
        },
      ],
    });
    expect(here.sent()).toEqual({
      model: 'gpt-x',
      max_tokens: 4000,
      reasoning_effort: 'low',
      stop: ['END'],
      tools: [{ type: 'function', function: { name: 'look', parameters: look.input_schema } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      user: 'u',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'look', arguments: '{"at":"it"}' } }] },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'a cat' },
        { role: 'user', content: 'And now?' },
      ],
    });
    const warned = (headers.get('x-dragoman-warnings') ?? '').split('; ').map((line) => line.split(':', 1).join());
    expect(warned.toSorted()).toEqual(['cache_control', 'redacted_thinking', 'thoughts', 'top_k']);
  });
});

test('a chat model without effort is asked without one, with a warning', async () => {
  here.upstream.script(badRequest({ message: 'Unrecognized request argument supplied: reasoning_effort' }), ok());
  const { status, headers } = await here.whole(request(undefined, { model: 'gpt-y', thinking: { type: 'disabled' } }));
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, 'thinking: this model does not take it.']);
  expect(here.upstream.requests.map(({ json }) => (json as { reasoning_effort?: string }).reasoning_effort)).toEqual(['none', undefined]);
});
