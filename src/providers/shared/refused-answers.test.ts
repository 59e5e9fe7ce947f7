import { expect, test } from 'vitest';
import { UpstreamError } from '#kit/upstream/response';
import { upstreamFault } from './post.ts';
import { parsed, parsedLarge } from './read-answer.ts';

test.each([
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'No secure connection (TLS) to the provider can be made.'],
  ['CERT_HAS_EXPIRED', 'No secure connection (TLS) to the provider can be made.'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'No secure connection (TLS) to the provider can be made.'],
  ['ECONNRESET', 'The provider closed the connection without an answer.'],
])('a connection that ends with %s before the answer is told as what it is', (code, message) => {
  const cause = Object.assign(new Error('it failed'), { code });
  expect(upstreamFault(new UpstreamError('broken', cause))).toMatchObject({ code: 'overloaded', message });
});

test.each([
  ['\n <!doctype html><p>Sign in', 'The provider answered with a web page instead of JSON: its base URL may be wrong.'],
  ['Sign in', 'The answer of the provider is not JSON, or is too complex to parse.'],
])('an answer that is not JSON is told, and a web page by that name: %j', async (text, message) => {
  const bytes = new TextEncoder().encode(text);
  expect(() => parsed(bytes)).toThrow(message);
  await expect(parsedLarge(bytes)).rejects.toThrow(message);
});
