import { expect, test } from 'vitest';
import { settingsOf } from './connection.ts';

test.each([
  ['postgres://a@b/c', 'postgres://a@b/c'],
  ['postgres://a@b/c?sslmode=require', 'postgres://a@b/c?sslmode=verify-full'],
  ['postgres://a@b/c?x=1&sslmode=prefer&y=2', 'postgres://a@b/c?x=1&sslmode=verify-full&y=2'],
  ['postgres://a@b/c?sslmode=disable', 'postgres://a@b/c?sslmode=disable'],
  ['postgres://a@b/c?sslmode=no-verify', 'postgres://a@b/c?sslmode=no-verify'],
  ['postgres://a@b/c?uselibpqcompat=true&sslmode=require', 'postgres://a@b/c?uselibpqcompat=true&sslmode=require'],
])('%s reaches the driver as what it takes it for', (url, driven) => {
  expect(settingsOf(url).connectionString).toBe(driven);
});
