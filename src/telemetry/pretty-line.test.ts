import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { prettyLine } from './pretty-line.ts';

const line = (fields: object) => stripVTControlCharacters(prettyLine('error', fields, 'It failed.'));

test('of causes within causes, a person is told what the innermost says, and of one without words its members', () => {
  const cause = {
    name: 'UpstreamError',
    message: 'The provider is away.',
    cause: { name: 'Error', message: 'connect ECONNREFUSED 127.0.0.1:9101', code: 'ECONNREFUSED' },
  };
  expect(line({ requestId: 'r', cause })).toMatch(/ERROR It failed\. {2}requestId=r cause="connect ECONNREFUSED 127\.0\.0\.1:9101"\n$/);
  expect(line({ cause: { status: 401, code: 'invalid_api_key' } })).toContain('cause={"status":401,"code":"invalid_api_key"}');
});
