import { expect, test } from 'vitest';
import { quirksAt } from './models.ts';

const at = (model: string) => quirksAt('anthropic', model) ?? {};
const fifth = { adaptive: true, innerSystem: true, withoutPrefill: true, without: ['temperature', 'top_p', 'top_k'] };

test.each<[string, object]>([
  ['claude-3-5-sonnet-20241022', { withoutFormat: true, withoutStrict: true }],
  ['claude-opus-4-20250514', { withoutFormat: true, withoutStrict: true }],
  ['claude-opus-4-1-20250805', { eitherSampling: true }],
  ['claude-haiku-4-5-20251001', { eitherSampling: true }],
  ['claude-sonnet-4-6', { eitherSampling: true, withoutPrefill: true }],
  ['claude-opus-4-7', { adaptive: true, withoutPrefill: true, without: fifth.without }],
  ['claude-opus-4-8', fifth],
  ['claude-opus-5', fifth],
  ['claude-sonnet-5', fifth],
  ['claude-haiku-5-5', fifth],
  ['claude-fable-5', { ...fifth, thinkingOff: 'low-effort' }],
  ['claude-sonnet-5-5', { ...fifth, thinkingOff: 'between_tools', withoutForcedTools: true }],
  ['claude-opus-5-5', { ...fifth, thinkingOff: 'low-effort', withoutForcedTools: true }],
  ['claude-fable-5-1', { ...fifth, thinkingOff: 'low-effort', withoutForcedTools: true }],
  ['claude-mythos-preview', { ...fifth, thinkingOff: 'low-effort', withoutForcedTools: true }],
])('what is known of %s is right in the first request', (model, quirks) => {
  expect(at(model)).toEqual({ demandsThoughts: true, ...quirks });
});

test('nothing is known of other names, and of models at other addresses', () => {
  for (const model of ['gpt-5', 'claude', 'opus-5', '']) expect(quirksAt('anthropic', model)).toBeUndefined();
  expect(quirksAt(undefined, 'claude-opus-5-5')).toBeUndefined();
  expect(quirksAt('openrouter', 'anthropic/claude-opus-5.5')).toBeUndefined();
});
