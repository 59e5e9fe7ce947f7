import { expect, test } from 'vitest';
import { randomKey } from '#kit/crypto/ids';
import { keyed, type Request } from './key.ts';

const pepper = randomKey();
const request: Request = { caller: { userId: 1 }, key: 'order-17', method: 'POST', url: '/a/b?alt=sse', choices: [], body: Buffer.from('{"a":1}') };
const fingerprint = (changed: Partial<Request>) => keyed({ ...request, ...changed }, pepper).fingerprint.toString('hex');

test('another method, path, query or body is another request; another credential in the query is not', () => {
  const others = [{ method: 'PUT' }, { url: '/a/c?alt=sse' }, { url: '/a/b?alt=json' }, { url: '/a/b' }, { body: Buffer.from('{"a": 1}') }];
  const all = [{}, ...others].map(fingerprint);
  expect(new Set(all).size).toBe(all.length);
  expect(fingerprint({ url: '/a/b?key=secret&alt=sse' })).toBe(fingerprint({}));
  expect(fingerprint({ url: '/a/b?key=secret' })).toBe(fingerprint({ url: '/a/b' }));
});

test('a key that may do less asks another request, and so does a header that chooses otherwise; the order of the names is nothing', () => {
  const rights = [{ scopes: ['query'] }, { models: ['query'] }, { mcpTools: ['query'] }, { models: ['a', 'b'] }];
  const all = [{}, { choices: ['x-dragoman-strict', 'true'] }, ...rights.map((some) => ({ caller: { userId: 1, ...some } }))].map(fingerprint);
  expect(new Set(all).size).toBe(all.length);
  expect(fingerprint({ caller: { userId: 1, models: ['b', 'a'] } })).toBe(all.at(-1));
});

test('neither digest can be made without the pepper', () => {
  const [mine, theirs] = [keyed(request, pepper), keyed(request, randomKey())];
  expect(mine.name.equals(theirs.name)).toBe(false);
  expect(mine.fingerprint.equals(theirs.fingerprint)).toBe(false);
});

test('a body cannot be moved into the address', () => {
  expect(fingerprint({ url: '/a', body: Buffer.from('b\nc') })).not.toBe(fingerprint({ url: '/a\nb', body: Buffer.from('c') }));
});
