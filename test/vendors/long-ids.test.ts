import { describe, expect, test } from 'vitest';
import { chat, startTestServer } from '../support/server.ts';
import { startVendors } from '../support/fakes/vendors/index.ts';

/** Ids of tool calls are longer at vLLM and others than OpenAI takes them, and conversations move: anomalyco/opencode#12653, openclaw/openclaw#875. */

const id = `chatcmpl-tool-${'a1b2c3d4'.repeat(4)}`;
const longer = `${id}|fc_${'0'.repeat(40)}`;

const messages = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: null, tool_calls: [id, longer].map((one) => ({ id: one, type: 'function', function: { name: 'work', arguments: '{}' } })) },
  { role: 'tool', tool_call_id: id, content: 'first' },
  { role: 'tool', tool_call_id: longer, content: 'second' },
  { role: 'user', content: 'go on' },
];

describe.each([
  ['at its own address', true],
  ['at an address that nobody knows', false],
])('a vendor %s', (_, known) => {
  test.each([
    ['gpt-4o', 40],
    ['azure-gpt-5', 40],
    ['gpt-4o-on-responses', 64],
    ['vllm-llama3.3', Infinity],
  ])('%s gets ids of at most %s characters, each call with its result', async (model, most) => {
    const vendors = await startVendors();
    const server = await startTestServer({ yaml: known ? vendors.yaml : vendors.unknownYaml });
    try {
      const answer = await server.ask(chat, { model, messages });
      expect(answer.status).toBe(200);
      const { body, text } = vendors.requests.at(-1)!;
      const items = (body.messages ?? body.input) as readonly {
        tool_calls?: readonly { id: string }[];
        tool_call_id?: string;
        type?: string;
        call_id?: string;
      }[];
      const calls = items.flatMap((one) => one.tool_calls?.map((call) => call.id) ?? (one.type === 'function_call' ? [one.call_id!] : []));
      const results = items.flatMap((one) => one.tool_call_id ?? (one.type === 'function_call_output' ? [one.call_id!] : []));
      expect([calls, new Set(calls).size]).toEqual([results, 2]);
      for (const one of calls) expect(one.length).toBeLessThanOrEqual(most);
      expect(text.includes(longer)).toBe(most === Infinity);
      if (known) expect(vendors.requests).toHaveLength(1);
    } finally {
      await server.close();
      await vendors.close();
    }
  });
});
