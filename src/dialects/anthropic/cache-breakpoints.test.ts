import { expect, test } from 'vitest';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { withFewBreakpoints } from './cache-breakpoints.ts';

const cache_control = { type: 'ephemeral' };
const message = (text: string, breakpoint: object = { cache_control }) => ({ role: 'user', content: [{ type: 'text', text, ...breakpoint }] });

test('only what loses a breakpoint is copied', () => {
  const [plain, kept] = [message('plain', {}), ['3', '4', '5', '6'].map((text) => message(text))];
  const tools = [{ name: 'a', input_schema: { properties: { cache_control: {} } } }];
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x', cache_control, content: message('1').content }] };
  const body = { model: 'm', tools, messages: [message('2'), plain, result, ...kept] };
  const before = structuredClone(body);
  const left = withFewBreakpoints(body, new Set()) as typeof body;
  expect(left).toEqual({
    ...body,
    messages: [message('2', {}), plain, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x', content: message('1', {}).content }] }, ...kept],
  });
  expect(body).toEqual(before);
  expect(left.tools).toBe(tools);
  expect([1, 3, 4, 5, 6].every((at) => left.messages[at] === body.messages[at])).toBe(true);
});

test('twenty thousand messages with breakpoints are handled at once', () => {
  const messages = Array.from({ length: 20_000 }, (_, at) => message(`turn ${at}`));
  const took = Array.from({ length: 5 }, () => cpuMilliseconds(() => withFewBreakpoints({ messages }, new Set())));
  expect(Math.min(...took)).toBeLessThan(50);
});
