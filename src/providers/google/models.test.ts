import { describe, expect, test } from 'vitest';
import { gemini } from '#dialects/gemini/index';
import type { GenerateCall, Reasoning } from '#core/call';
import { quirksAt } from './models.ts';

const call: GenerateCall = {
  dialect: 'openai-chat',
  model: 'm',
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
  tools: [],
  output: { type: 'text' },
  sampling: {},
  stream: false,
  extra: {},
};

/** What a model of the Gemini API is told of thinking. */
function told(model: string, reasoning: Reasoning): unknown {
  const { body } = gemini.encodeRequest({ ...call, reasoning }, model, quirksAt('google', model));
  return (body['generationConfig'] as { thinkingConfig?: object } | undefined)?.thinkingConfig;
}

const shown = { includeThoughts: true };

describe('thinking of a known model', () => {
  test.each<[string, Reasoning, unknown]>([
    ['gemini-2.5-pro', { effort: 'none' }, { thinkingBudget: 128 }],
    ['gemini-2.5-pro-preview-06-05', { effort: 'none' }, { thinkingBudget: 128 }],
    ['models/gemini-2.5-pro', { effort: 'max' }, { thinkingBudget: 32_768, ...shown }],
    ['gemini-2.5-pro', { effort: 'medium', budget: 4000 }, { thinkingBudget: 4000, ...shown }],
    ['gemini-2.5-pro', { effort: 'minimal', budget: 50 }, { thinkingBudget: 128, ...shown }],
    ['gemini-2.5-pro', { effort: 'high', budget: 64_000 }, { thinkingBudget: 32_768, ...shown }],
    ['gemini-2.5-flash', { effort: 'none' }, { thinkingBudget: 0 }],
    ['gemini-2.5-flash', { effort: 'high', budget: 30_000 }, { thinkingBudget: 24_576, ...shown }],
    ['gemini-2.5-flash', { effort: 'low', budget: 1024, hidden: true }, { thinkingBudget: 1024 }],
    ['gemini-2.5-flash', {}, shown],
    ['gemini-2.5-flash-lite', { effort: 'minimal', budget: 100 }, { thinkingBudget: 512, ...shown }],
    ['gemini-2.5-flash-lite', { effort: 'none' }, { thinkingBudget: 0 }],
    ['gemini-2.0-flash', { effort: 'high' }, undefined],
    ['gemini-3-pro-preview', { effort: 'none' }, { thinkingLevel: 'low' }],
    ['gemini-3-pro-preview', { effort: 'medium' }, { thinkingLevel: 'high', ...shown }],
    ['gemini-3.1-pro-preview', { effort: 'medium' }, { thinkingLevel: 'medium', ...shown }],
    ['gemini-3-flash-preview', { effort: 'none' }, { thinkingLevel: 'minimal' }],
    ['gemini-3-flash-preview', { effort: 'medium', budget: 9000 }, { thinkingLevel: 'medium', ...shown }],
    ['gemini-3.7-flash', { effort: 'minimal' }, { thinkingLevel: 'low', ...shown }],
    ['gemini-4-pro', { effort: 'max' }, { thinkingLevel: 'high', ...shown }],
  ])('%s, %o: %o', (model, reasoning, expected) => {
    expect(told(model, reasoning)).toEqual(expected);
  });
});

test('what only Gemini 3 takes is not sent to Gemini 2.x', () => {
  const asked: GenerateCall = {
    ...call,
    output: { type: 'json' },
    sampling: { frequencyPenalty: 0.5 },
    tools: [{ type: 'function', name: 'look' }],
    turns: [
      ...call.turns,
      { role: 'model', parts: [{ type: 'tool-call', id: 'a', name: 'look', json: '{}' }] },
      { role: 'user', parts: [{ type: 'tool-result', id: 'a', parts: [{ type: 'media', kind: 'image', mediaType: 'image/png', base64: 'AA==' }] }] },
    ],
  };
  const [second, third] = ['gemini-2.5-flash', 'gemini-3-flash'].map((model) => gemini.encodeRequest(asked, model, quirksAt('google', model)));
  expect(second!.body).not.toHaveProperty('generationConfig');
  expect(second).toMatchObject({ unpromised: true, body: { systemInstruction: { parts: [{ text: expect.stringContaining('JSON') as string }] } } });
  expect((second!.body['contents'] as { parts: object[] }[])[2]?.parts).toMatchObject([{ functionResponse: { response: { output: '' } } }, { inlineData: {} }]);
  expect(JSON.stringify(second!.body)).not.toContain('thoughtSignature');
  expect(third!.body).toMatchObject({ generationConfig: { responseMimeType: 'application/json' } });
  expect(third!.body['generationConfig']).not.toHaveProperty('frequencyPenalty');
  expect(third!.body['contents']).toMatchObject([
    {},
    { parts: [{ functionCall: { name: 'look' }, thoughtSignature: 'skip_thought_signature_validator' }] },
    { parts: [{ functionResponse: { parts: [{ inlineData: {} }] } }] },
  ]);
});

test('of other servers, and other models, nothing is known', () => {
  expect(quirksAt(undefined, 'gemini-2.5-pro')).toBeUndefined();
  expect(quirksAt('google', 'gemma-3-27b-it')).toBeUndefined();
  expect(quirksAt('vertex', 'some-model')).toEqual({ withoutIds: true });
  expect(quirksAt('vertex', 'google/gemini-2.5-pro')).toMatchObject({ withoutIds: true, alwaysThinks: true });
});
