import { describe, expect, test } from 'vitest';
import { decodeFault as decodeAnthropic } from '#dialects/anthropic/faults';
import { decodeFault as decodeGemini } from '#dialects/gemini/faults';
import { missingIn } from '#dialects/shared/missing-model';
import { decodeFault as decodeOpenAI } from '#dialects/openai/faults';

describe('a 404 says that the model is missing', () => {
  test.each<[string, string]>([
    ['gpt-x', 'The model `gpt-x` does not exist or you do not have access to it.'],
    ['gpt-x', "The model 'gpt-x' was not found."],
    ['llama3:8b', 'model "llama3:8b" not found, try pulling it first'],
    ['claude-x', 'model: claude-x'],
    ['gemini-x', 'models/gemini-x is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list.'],
    ['gemini-x', 'Publisher Model `projects/p/locations/us/publishers/google/models/gemini-x` was not found or your project does not have access to it.'],
    ['gpt-x', 'The model `gpt-x` has been deprecated, learn more here.'],
    ['a/x', 'No endpoints found for a/x.'],
    ['kimi', 'Not found the model kimi or Permission denied'],
    ['x', 'Unknown model: x'],
    ['meta/x', 'The requested model x could not be found.'],
    ['x', 'Model not found'],
    ['x', 'The model is not available in this region.'],
    ['x', 'Publisher model was not found or your project does not have access to it.'],
    ['x', 'The requested model is unavailable.'],
    ['x', 'Requested entity was not found.'],
  ])('of %s with %j', (model, message) => {
    expect(missingIn(message, model)).toBe('model');
  });
});

describe('a 404 says that something else is missing', () => {
  test.each([
    "No such File object: file-gpt-x, and the model 'gpt-x' does not exist",
    'File model gpt-x was not found',
    "Previous response with id 'resp_gpt-x' not found.",
    'Container with id gpt-x was not found.',
    'CachedContent not found (or permission denied) for models/gpt-x',
    'cachedContents/gpt-x is not found',
    'The model `gpt-x` has a cached content that is not there: gpt-x',
    'The model `gpt-image-none` does not exist',
    'Tool model `gpt-x` not found',
    'Model not found: gpt-image-none',
    'The model was not found for gpt-image-none',
    'The image model is not available in this region.',
  ])('with %j', (message) => {
    expect(missingIn(message, 'gpt-x')).toBe('missing');
  });

  test('in the words of each dialect, and that is no fault of the model', () => {
    const error = (message: string, more: object = {}) => JSON.stringify({ error: { message, type: 'invalid_request_error', ...more } });
    const faults = [
      decodeOpenAI(404, error('No such File object: model gpt-x'), {}, 'gpt-x'),
      decodeOpenAI(404, error('The model `none` does not exist', { code: 'model_not_found' }), {}, 'gpt-x'),
      decodeAnthropic(404, error('File not found: claude-x', { type: 'not_found_error' }), {}, 'claude-x'),
      decodeGemini(404, error('File models/x may not exist', { status: 'NOT_FOUND' }), {}, 'x'),
    ];
    for (const { code, details } of faults)
      expect([code, details.absent, details.elsewhere, details.reason]).toEqual(['not-found', undefined, undefined, undefined]);
    const tool = error('The model `gpt-x` does not exist', { code: 'model_not_found', param: 'tools[0].model' });
    expect(decodeOpenAI(400, tool, {}, 'gpt-x')).toMatchObject({ code: 'invalid', details: { field: 'tools[0].model' } });
  });

  test.each(['Invalid URL (POST /v1/models)', 'Not Found', '', 'Resource not found', 'Method not found.', 'no such route'])(
    'or the address, with %j',
    (message) => {
      expect(missingIn(message, 'gpt-x')).toBe('address');
    },
  );

  test('in time that does not grow with the sentence', () => {
    for (const unit of ['the ', 'model', ' ', '"', 'no model ']) expect(missingIn(unit.repeat(100_000), 'x')).toBeOneOf(['address', 'missing']);
  });
});

describe('what a caller wrote', () => {
  const error = (message: string, more: object = {}) => JSON.stringify({ error: { message, ...more } });

  test('does not set a key aside where a refusal repeats it', () => {
    expect(decodeAnthropic(400, error('tools.0.name: credit balance is not a name')).details.key).toBeUndefined();
    expect(decodeAnthropic(400, error('Your credit balance is too low to access the Anthropic API.')).details.key).toBe(true);
    expect(decodeGemini(400, error('Invalid JSON payload received. Unknown name "API key" at tools[0]')).details.key).toBeUndefined();
    expect(decodeGemini(400, error('API key not valid. Please pass a valid API key.')).details.key).toBe(true);
  });

  test('is what a 403 of a moderation is about, and no key is set aside for it', () => {
    const flagged = [error('No.', { code: 403, metadata: { reasons: ['violence'] } }), error('Your input was flagged for "violence"', { code: 403 })];
    for (const { code, details } of flagged.map((body) => decodeOpenAI(403, body)))
      expect([code, details.reason, details.key]).toEqual(['invalid', 'content-policy', undefined]);
    expect(decodeOpenAI(403, error('Your key was flagged.', { code: 403 })).details.key).toBe(true);
  });

  test('may be too long for a minute: then the target is not busy for others', () => {
    const tooLarge = error('Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 60000.', {
      code: 'rate_limit_exceeded',
    });
    expect(decodeOpenAI(429, tooLarge)).toMatchObject({ code: 'rate-limited', details: { elsewhere: true, exceedsLimit: true } });
    expect(decodeOpenAI(429, tooLarge.replace('60000', '20000')).details.exceedsLimit).toBeUndefined();
  });
});
