import { describe, expect, test } from 'vitest';
import { Fault, statuses, type FaultCode } from '#core/fault';
import { decodeFault, encodeFault, encodeFaultFrame, faultOfError } from './faults.ts';

describe('a fault in the words of this wire', () => {
  const table: Record<FaultCode, string> = {
    invalid: 'invalid_request_error',
    unauthenticated: 'authentication_error',
    forbidden: 'permission_error',
    'not-found': 'not_found_error',
    'wrong-method': 'invalid_request_error',
    'slow-client': 'invalid_request_error',
    conflict: 'conflict_error',
    'too-large': 'request_too_large',
    'unsupported-type': 'invalid_request_error',
    unprocessable: 'invalid_request_error',
    'quota-spent': 'rate_limit_error',
    'rate-limited': 'rate_limit_error',
    internal: 'api_error',
    unsupported: 'invalid_request_error',
    'upstream-failed': 'api_error',
    overloaded: 'overloaded_error',
    'timed-out': 'timeout_error',
  };

  test.each(Object.keys(statuses) as FaultCode[])('%s', (code) => {
    const body = { type: 'error', error: { type: table[code], message: 'Said so.' }, request_id: 'req_1' };
    const fault = new Fault(code, 'Said so.', { cause: 'secret' });
    expect(encodeFault(fault, 'req_1')).toEqual(body);
    expect(encodeFaultFrame(fault, 'req_1')).toBe(`event: error\ndata: ${JSON.stringify(body)}\n\n`);
  });
});

describe("a provider's refusal", () => {
  const error = (type: string, message = 'sk-secret and a prompt') => JSON.stringify({ type: 'error', error: { type, message } });
  const elsewhere = true;

  test.each<[number, string, { readonly code: string; readonly details: object }]>([
    [429, error('rate_limit_error'), { code: 'rate-limited', details: { elsewhere } }],
    [529, error('overloaded_error'), { code: 'overloaded', details: { elsewhere } }],
    [503, '', { code: 'overloaded', details: { elsewhere } }],
    [500, error('overloaded_error'), { code: 'overloaded', details: { elsewhere } }],
    [500, error('api_error'), { code: 'upstream-failed', details: { elsewhere } }],
    [504, error('timeout_error'), { code: 'upstream-failed', details: { elsewhere } }],
    [502, '<html>sk-secret</html>', { code: 'upstream-failed', details: { elsewhere } }],
    [408, '', { code: 'upstream-failed', details: { elsewhere } }],
    [401, error('authentication_error'), { code: 'upstream-failed', details: { key: true, elsewhere: undefined } }],
    [402, error('billing_error'), { code: 'upstream-failed', details: { key: true, elsewhere: undefined } }],
    [403, error('permission_error'), { code: 'upstream-failed', details: { key: true, elsewhere: undefined } }],
    [400, error('invalid_request_error', 'Your credit balance is too low to access the API.'), { code: 'upstream-failed', details: { key: true } }],
    [404, error('not_found_error', 'model: claude-none'), { code: 'not-found', details: { absent: true, elsewhere, reason: 'model' } }],
    [404, 'no such route', { code: 'upstream-failed', details: { elsewhere: undefined } }],
    [
      400,
      error('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
      { code: 'invalid', details: { reason: 'context-length', context: { tokens: 210_000, most: 200_000 } } },
    ],
    [400, error('invalid_request_error', 'Output blocked by content filtering policy'), { code: 'invalid', details: { reason: 'content-policy' } }],
    [400, error('invalid_request_error', 'max_tokens: 100000 > 8192'), { code: 'invalid', details: { field: 'max_tokens', maxOutputTokens: 8192 } }],
    [400, error('invalid_request_error', 'messages.0.content: sk-secret'), { code: 'invalid', details: { field: 'messages' } }],
    [
      400,
      error('invalid_request_error', '`temperature` is deprecated for this model.'),
      { code: 'invalid', details: { field: 'temperature', reason: 'field-unknown' } },
    ],
    [
      400,
      error('invalid_request_error', '"thinking.type.enabled" is not supported for this model.'),
      { code: 'invalid', details: { field: 'thinking', reason: 'field-unknown' } },
    ],
    [400, error('invalid_request_error'), { code: 'invalid', details: { field: undefined } }],
    [413, error('request_too_large'), { code: 'too-large', details: { elsewhere: undefined } }],
  ])('%d %s', (status, body, expected) => {
    const fault = decodeFault(status, body);
    const { cause: _, said: _said, place: _place, ...details } = fault.details;
    expect({ code: fault.code, details }).toEqual({ code: expected.code, details: withoutUndefined(expected.details) });
    expect(fault.message + JSON.stringify(fault.details)).not.toContain('sk-secret');
  });

  const withoutUndefined = (details: object): unknown => JSON.parse(JSON.stringify(details));

  test('says how long to wait', () => {
    expect(decodeFault(429, '', { 'retry-after': '7' }).details.retryAfter).toBe(7);
  });

  test.each([
    ['rate_limit_error', 'rate-limited'],
    ['overloaded_error', 'overloaded'],
    ['authentication_error', 'upstream-failed'],
    ['invalid_request_error', 'invalid'],
    ['not_found_error', 'not-found'],
    ['api_error', 'upstream-failed'],
    ['word_of_tomorrow', 'upstream-failed'],
  ])('inside of an answer, %s is %s', (type, code) => {
    expect(faultOfError({ type, message: 'x' }).code).toBe(code);
  });
});
