import { expect, test } from 'vitest';
import type { MediaPart } from './conversation.ts';
import type { GenerateCall } from './call.ts';
import { promptSize } from './measure.ts';

const callWith = (...parts: readonly MediaPart[]): GenerateCall => ({
  model: 'm',
  stream: false,
  turns: [{ role: 'user', parts }],
  tools: [],
  toolChoice: { type: 'auto' },
  output: { type: 'text' },
  sampling: {},
  extra: {},
});
const bare = promptSize(callWith()).fixed;
const fileOf = (mediaType: string, bytes: number): MediaPart => ({ type: 'media', kind: 'file', mediaType, base64: Buffer.alloc(bytes).toString('base64') });

test.each([
  ['text/plain', 1_000_000],
  ['application/json', 1_000_000],
  ['image/svg+xml; charset=utf-8', 1_000_000],
])('a file of type %s that comes in base64 is set aside by its length', (mediaType, bytes) => {
  const tokens = promptSize(callWith(fileOf(mediaType, bytes))).fixed - bare;
  expect(tokens).toBeGreaterThan(bytes / 4);
  expect(tokens).toBeLessThan(bytes / 3);
});

test('a small text file, and a file that is no text, cost what any file does', () => {
  for (const file of [fileOf('text/plain', 100), fileOf('application/pdf', 1_000_000)]) expect(promptSize(callWith(file)).fixed - bare).toBe(2000);
});
