import { expect, test } from 'vitest';
import { textIn } from './text-files.ts';

test('a text is read by its charset, unless it is so long that this would take too much time', () => {
  const bytes = Buffer.alloc(4_194_304, 'Größe ', 'latin1');
  const type = 'text/plain; charset=ISO-8859-1';
  expect(textIn(bytes.toString('base64'), type)).toHaveLength(bytes.length);
  expect(textIn(bytes.toString('base64'), type).slice(0, 5)).toBe('Größe');
  expect(textIn(Buffer.concat([bytes, Buffer.of(32)]).toString('base64'), type).slice(0, 5)).not.toBe('Größe');
  expect(textIn(Buffer.from('Größe').toString('base64'))).toBe('Größe');
});
