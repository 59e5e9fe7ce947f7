import { describe, expect, test } from 'vitest';
import type { FunctionTool } from '#core/conversation';
import type { JsonObject } from '#core/json';
import { schemaBudget } from '../shared/schema-budget.ts';
import { fittedFunction } from './tool-schemas.ts';

function fit(tool: FunctionTool): { readonly tool: FunctionTool; readonly ignored: readonly string[] } {
  const ignored = new Set<string>();
  return { tool: fittedFunction(tool, ignored, schemaBudget()), ignored: [...ignored] };
}

const strict = (parameters: JsonObject): FunctionTool => ({ type: 'function', name: 'f', strict: true, parameters });

describe('schemas for OpenAI', () => {
  test.each([{}, { type: 'object' }])('of %j are objects with properties', (parameters) => {
    expect(fit({ type: 'function', name: 'f', parameters })).toEqual({
      tool: { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } },
      ignored: [],
    });
  });

  test('keep strict where everything in them is required and closed', () => {
    const tool = strict({ type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false });
    expect(fit(tool).tool).toBe(tool);
  });

  test.each([
    ['an optional property', { type: 'object', properties: { a: {} }, required: [], additionalProperties: false }],
    ['an object that is open', { type: 'object', properties: { a: {} }, required: ['a'] }],
    [
      'such an object inside',
      { type: 'object', properties: { a: { type: 'array', items: { type: 'object', properties: {} } } }, required: ['a'], additionalProperties: false },
    ],
    ['a keyword that it must not have', { type: 'object', properties: { a: { oneOf: [] } }, required: ['a'], additionalProperties: false }],
  ])('lose strict, with a warning, for %s', (_name, parameters) => {
    const { tool, ignored } = fit(strict(parameters));
    expect(tool).not.toHaveProperty('strict');
    expect(ignored).toEqual([expect.stringMatching(/^tools: strict/)]);
  });
});
