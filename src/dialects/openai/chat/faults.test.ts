import { describe, expect, test } from 'vitest';
import { Fault, statuses, type FaultCode } from '#core/fault';
import { decodeFault, encodeFault } from './faults.ts';
import { chatRefusal } from '../../../../test/support/recordings.ts';

describe('a fault in the words of this wire', () => {
  const table: Record<FaultCode, readonly [string, string]> = {
    invalid: ['invalid_request_error', 'invalid_value'],
    unauthenticated: ['invalid_request_error', 'invalid_api_key'],
    forbidden: ['invalid_request_error', 'insufficient_scope'],
    'not-found': ['invalid_request_error', 'not_found'],
    'wrong-method': ['invalid_request_error', 'wrong_method'],
    'slow-client': ['invalid_request_error', 'slow_client'],
    conflict: ['invalid_request_error', 'conflict'],
    'too-large': ['invalid_request_error', 'too_large'],
    'unsupported-type': ['invalid_request_error', 'unsupported_type'],
    unprocessable: ['invalid_request_error', 'unprocessable'],
    'quota-spent': ['insufficient_quota', 'insufficient_quota'],
    'rate-limited': ['rate_limit_error', 'rate_limit_exceeded'],
    internal: ['server_error', 'internal_error'],
    unsupported: ['invalid_request_error', 'unsupported'],
    'upstream-failed': ['server_error', 'upstream_error'],
    overloaded: ['server_error', 'overloaded'],
    'timed-out': ['server_error', 'timeout'],
  };

  test.each(Object.keys(statuses) as FaultCode[])('%s', (code) => {
    const [type, word] = table[code];
    expect(encodeFault(new Fault(code, 'Said so.', { cause: 'secret' }))).toEqual({ error: { message: 'Said so.', type, param: null, code: word } });
  });

  test.each([
    ['invalid', 'missing', 'missing_required_parameter'],
    ['not-found', 'model', 'model_not_found'],
    ['forbidden', 'scope', 'insufficient_scope'],
    ['invalid', 'content-policy', 'content_policy_violation'],
    ['invalid', 'context-length', 'context_length_exceeded'],
    ['upstream-failed', 'stream-cut', 'upstream_error'],
  ] as const)('%s because of %s is %s', (code, reason, word) => {
    expect(encodeFault(new Fault(code, 'x', { reason, field: 'messages[0].content' }))).toMatchObject({ error: { code: word, param: 'messages[0].content' } });
  });
});

describe("a provider's refusal", () => {
  const error = (fields: object) => JSON.stringify({ error: fields });
  const secret = { message: 'sk-secret and a prompt', type: 'x', param: null, code: null };
  const elsewhere = true;

  test.each<[number, string, object]>([
    [429, error({ ...secret, code: 'rate_limit_exceeded' }), { code: 'rate-limited', details: { elsewhere } }],
    [429, chatRefusal('vercel/openai-error.1'), { code: 'upstream-failed', details: { elsewhere: undefined, key: true } }],
    [503, '', { code: 'overloaded', details: { elsewhere } }],
    [529, error({ ...secret, type: 'overloaded_error' }), { code: 'overloaded', details: { elsewhere } }],
    [500, error({ code: 500, status: 'RESOURCE_EXHAUSTED' }), { code: 'overloaded', details: { elsewhere } }],
    [500, '<html>sk-secret</html>', { code: 'upstream-failed', details: { elsewhere } }],
    [502, 'null', { code: 'upstream-failed', details: { elsewhere } }],
    [504, '[]', { code: 'upstream-failed', details: { elsewhere } }],
    [302, '', { code: 'upstream-failed', details: { elsewhere } }],
    [408, '', { code: 'upstream-failed', details: { elsewhere } }],
    [409, error({ ...secret, code: 'conflict' }), { code: 'upstream-failed', message: 'The provider failed.', details: { elsewhere } }],
    [424, '', { code: 'upstream-failed', details: { elsewhere } }],
    [425, '', { code: 'upstream-failed', details: { elsewhere } }],
    [401, error({ ...secret, code: 'invalid_api_key' }), { code: 'upstream-failed', details: { key: true, elsewhere: undefined } }],
    [402, '{}', { code: 'upstream-failed', details: { key: true, elsewhere: undefined } }],
    [403, '{}', { code: 'upstream-failed', details: { key: true, elsewhere: undefined } }],
    [
      404,
      error({ ...secret, message: 'The model `x` does not exist', code: 'model_not_found' }),
      { code: 'not-found', details: { reason: 'model', absent: true, elsewhere } },
    ],
    [404, error({ code: 'DeploymentNotFound', message: 'sk-secret' }), { code: 'not-found', details: { absent: true, elsewhere } }],
    [
      404,
      '{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}',
      { code: 'not-found', details: { absent: true } },
    ],
    [404, '{"error":"model \\"x\\" not found, try pulling it first"}', { code: 'not-found', details: { absent: true } }],
    [400, error({ ...secret, code: 'model_not_found' }), { code: 'not-found', details: { absent: true } }],
    [404, '{"detail":"Not Found"}', { code: 'upstream-failed', details: { elsewhere: undefined, absent: undefined } }],
    [404, '<html>not found</html>', { code: 'upstream-failed', details: { elsewhere: undefined } }],
    [405, '', { code: 'upstream-failed', details: { elsewhere: undefined } }],
    [413, '', { code: 'too-large', details: { elsewhere: undefined } }],
    [498, error({ ...secret, type: 'capacity_exceeded' }), { code: 'overloaded', details: { elsewhere } }],
    [413, error({ ...secret, type: 'tokens', code: 'rate_limit_exceeded' }), { code: 'rate-limited', details: { elsewhere } }],
    [
      413,
      error({
        message: 'Request too large for model `x` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce',
        code: 'rate_limit_exceeded',
      }),
      { code: 'rate-limited', details: { elsewhere, exceedsLimit: true } },
    ],
    [
      400,
      error({
        ...secret,
        message: "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
        code: 'string_above_max_length',
      }),
      { code: 'invalid', details: { reason: undefined } },
    ],
    [400, error({ ...secret, code: 'invalid_prompt' }), { code: 'invalid', details: { reason: 'content-policy' } }],
    [
      400,
      error(secret),
      { code: 'invalid', message: 'The provider did not accept the request. It says: […] and a prompt', details: { elsewhere: undefined, field: undefined } },
    ],
    [400, 'prompt: sk-secret', { code: 'invalid', message: 'The provider did not accept the request.' }],
    [400, error({ ...secret, code: 'context_length_exceeded', param: 'messages' }), { code: 'invalid', details: { reason: 'context-length' } }],
    [
      400,
      error({ ...secret, message: "This model's maximum context length is 8192 tokens. sk-secret" }),
      { code: 'invalid', details: { reason: 'context-length' } },
    ],
    ...[
      'the request exceeds the available context size. try increasing the context size or enable context shift',
      "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`',
      'Input is too long for requested model.',
      'The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller.',
      '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]',
      'Prompt exceeds max length',
      'Input validation error: `inputs` must have less than 4095 tokens. Given: 5000',
      'Please reduce the length of the messages or completion.',
      'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.',
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    ].map((message): [number, string, object] => [400, error({ ...secret, message }), { code: 'invalid', details: { reason: 'context-length' } }]),
    [400, error({ ...secret, code: 'content_filter', param: 'prompt' }), { code: 'invalid', details: { reason: 'content-policy' } }],
    [
      400,
      chatRefusal('vercel/reasoning-model-legacy-parameter-error'),
      {
        code: 'invalid',
        message: expect.stringMatching(/^The provider did not accept max_tokens. It says: Unsupported parameter: 'max_tokens' is not supported/) as string,
        details: { field: 'max_tokens' },
      },
    ],
    [400, error({ ...secret, message: 'Unrecognized request argument supplied: stream_options' }), { code: 'invalid', details: { field: 'stream_options' } }],
    [
      422,
      '{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]}',
      { code: 'invalid', details: { field: 'stream_options' } },
    ],
    [400, error({ ...secret, param: 'messages[0].content\r\nX: sk-secret' }), { code: 'invalid', details: { field: undefined } }],
    [200, '{"error":{"message":"x"}}', { code: 'upstream-failed' }],
  ])('%i %s', (status, body, fault) => {
    const decoded = decodeFault(status, body);
    const details = { elsewhere: undefined, field: undefined, absent: undefined, reason: undefined, ...decoded.details };
    expect({ code: decoded.code, message: decoded.message, details }).toMatchObject(fault);
    expect(JSON.stringify([decoded.message, decoded.details])).not.toContain('sk-secret');
  });

  test.each<[Record<string, string>, number | undefined]>([
    [{ 'retry-after': '3' }, 3],
    [{ 'retry-after': ' 1.5 ' }, 1.5],
    [{ 'retry-after-ms': '250', 'retry-after': '3' }, 0.25],
    [{ 'retry-after-ms': 'soon', 'retry-after': '3' }, 3],
    [{ 'retry-after': 'Sat, 21 Nov 2026 11:00:30 GMT', date: 'Sat, 21 Nov 2026 11:00:00 GMT' }, 30],
    [{ 'retry-after': 'Sat, 21 Nov 2026 10:00:00 GMT', date: 'Sat, 21 Nov 2026 11:00:00 GMT' }, undefined],
    [{ 'retry-after': 'Sat, 21 Nov 2026 11:00:30 GMT' }, undefined],
    [{ 'retry-after': '0' }, undefined],
    [{ 'retry-after': '-1' }, undefined],
    [{ 'retry-after': '86400' }, undefined],
    [{ 'retry-after': '1e3' }, undefined],
    [{ 'retry-after': 'abc' }, undefined],
    [{ 'retry-after': '9'.repeat(400) }, undefined],
    [{}, undefined],
  ])('with %j asks to wait %s seconds', (headers, seconds) => {
    expect(decodeFault(429, '', headers).details.retryAfter).toBe(seconds);
    expect(decodeFault(503, '', headers).details.retryAfter).toBe(seconds);
  });
});
