import { describe, expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { firstSentence, withProviderMessage } from './provider-message.ts';

describe('the first sentence of a provider', () => {
  test.each([
    [
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
      "Unsupported value: 'temperature' does not support 0.2 with this model.",
    ],
    ['messages.0.content: Input should be a valid string', 'messages.0.content: Input should be a valid string'],
    [
      'Invalid values (e.g. 1.5) for gpt-4.1-mini, claude-sonnet-4-5-20250929 and models/gemini-2.5-flash!\nDetails',
      'Invalid values (e.g. 1.5) for gpt-4.1-mini, claude-sonnet-4-5-20250929 and models/gemini-2.5-flash!',
    ],
    ['The organization must be verified to stream this model.', 'The organization must be verified to stream this model.'],
    ['An org-level limit for user_id, org_id and proj_id', 'An org-level limit for user_id, org_id and proj_id'],
    ['The org-admin role needs an org-scoped key', 'The org-admin role needs an org-scoped key'],
    ['Set org-id and proj_ids in the proj_quota field', 'Set org-id and proj_ids in the proj_quota field'],
  ])('%j is told as %j', (message, sentence) => expect(firstSentence(message)).toBe(sentence));

  test.each([
    ['Incorrect API key provided: sk-proj-abc***xyz', 'sk-proj'],
    ['key=abcdef is wrong', 'abcdef'],
    ['The header has Bearer 0123456789abcdef0123456789abcdef', '0123456789abcdef'],
    ['Write to ada.lovelace@example.org about it', 'lovelace'],
    ['Not in organization org-AbC123 on requests', 'org-AbC123'],
    ['The model is not for org-AbCdEfGhIjKl', 'AbCdEf'],
    ['The model is not for org-acme', 'acme'],
    ['proj_abcdef may not, nor may acct_secret', 'abcdef'],
    ['proj_abcdef may not, nor may acct_secret', 'acct_secret'],
    ['Organization `acme` may not', 'acme'],
    ['Project id: my-project-1 has not enabled it', 'my-project-1'],
    ['projects/secret/locations/us-central1 is not there', 'secret'],
    ['Account 123456789012 is not there', '123456789012'],
    ['arn:aws:bedrock:us-east-1:123456789012:model is not there', '123456789012'],
    ['Subscription 0f8fad5b-d9cb-469f-a165-70867728950e ended', '0f8fad5b'],
    ['The node internal-node-7f3a.upstream.svc said no', 'internal-node'],
    ['dial tcp 10.0.0.7:8000 refused', '10.0.0.7'],
    ['dial tcp [fd00:1:2::7]:8000 refused', 'fd00'],
    ['See https://platform.example/account?x=1', 'platform'],
    ['localhost:11434 said no', '11434'],
    ['a key s\u200bk-abc', 'abc'],
    [`The value ${'x'.repeat(200)}`, 'xxxxxxxx'],
  ])('of %j hides %j', (message, secret) => {
    const sentence = firstSentence(message)!;
    expect(sentence).toMatch(/\[(?:…|address|e-mail address)\]/);
    expect(sentence).not.toContain(secret);
  });

  test('is one line of at most 300 characters without control characters, whatever the provider sends', () => {
    for (const message of ['a b\u0000 c\u001b[31m \u202edrow\u2066 \ud800 '.repeat(50_000), '🐉 '.repeat(1000), '.'.repeat(1_000_000), ' '.repeat(1_000_000)]) {
      const sentence = firstSentence(message) ?? '';
      expect(sentence.length).toBeLessThanOrEqual(300);
      expect(sentence).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
    }
    expect(firstSentence('<html><body>502</body></html>')).toBeUndefined();
    expect(firstSentence(' \n ')).toBeUndefined();
  });
});

test('only what is about the request is repeated', () => {
  const messageOf = (status: number, details = {}) => withProviderMessage(new Fault('invalid', 'Ours.', details), status, 'Theirs. More.').message;
  expect([400, 404, 413, 422].map((status) => messageOf(status))).toEqual(Array(4).fill('Ours. It says: Theirs.'));
  expect([401, 402, 403, 429, 500, 503].map((status) => messageOf(status))).toEqual(Array(6).fill('Ours.'));
  expect(messageOf(400, { key: true })).toBe('Ours.');
});
