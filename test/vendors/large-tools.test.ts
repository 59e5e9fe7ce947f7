import { expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { FunctionTool } from '#core/conversation';
import { toolRules } from '#dialects/anthropic/tool-rules';
import { cpuMilliseconds } from '../support/cpu-time.ts';
import { quickest } from '../support/quickest.ts';
import { fittedTools } from '#dialects/shared/tool-fit';

/** Tools whose schemas are larger than what is fitted of them. */

const properties = (type: string) => Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`p${at}`, { type, description: 'x'.repeat(150) }]));
const callOf = (type: string, tools = 1000): GenerateCall => ({
  dialect: 'openai-responses',
  model: 'm',
  turns: [],
  tools: Array.from({ length: tools }, (_, at): FunctionTool => ({
    type: 'function',
    name: `f${at}`,
    parameters: { type: 'object', properties: properties(type) },
  })),
  output: { type: 'text' },
  sampling: {},
  stream: false,
  extra: {},
});

/** The types of the first properties of the tools that are sent. */
const sentTypes = (call: GenerateCall) =>
  JSON.stringify((fittedTools(call, toolRules)?.call ?? call).tools)
    .match(/"p0":\{"type":"\w+"/g)!
    .map((one) => one.slice(14, -1));

test.each(['string', 'int'])('20 MB of tools with properties of the type %s hold nobody up', async (type) => {
  const spent = await quickest(50, async () => {
    const call = callOf(type);
    return cpuMilliseconds(() => fittedTools(call, toolRules));
  });
  expect(spent).toBeLessThan(50);
});

test('schemas beyond the budget go as they came, in each attempt the same ones', () => {
  const call = callOf('int', 300);
  const first = sentTypes(call);
  expect(new Set(first.slice(0, 50))).toEqual(new Set(['integer']));
  expect(first.at(-1)).toBe('int');
  expect(sentTypes(call)).toEqual(first);
});

test('a schema is fitted once, however many attempts there are', () => {
  const call = callOf('int', 2);
  const parameters = () => (fittedTools(call, toolRules)!.call.tools[1] as FunctionTool).parameters;
  expect(parameters()).toBe(parameters());
});
