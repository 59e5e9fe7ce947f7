import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { isReadOnly } from './folder-lock.ts';

test('a folder on a read-only file system is known as such; one that is missing or of somebody else is none', () => {
  const failing = (code: string) => () => {
    throw Object.assign(new Error(code), { code });
  };
  expect(isReadOnly('/mnt', failing('EROFS'))).toBe(true);
  expect(isReadOnly('/mnt', failing('EACCES'))).toBe(false);
  expect(isReadOnly('/mnt', failing('ENOENT'))).toBe(false);
  expect(isReadOnly(tmpdir())).toBe(false);
});
