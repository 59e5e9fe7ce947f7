import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock, type Clock } from '../async/clock.ts';
import { joinedAttachments } from './attachments.ts';
import { ConversionChild } from './child.ts';
import { proves } from '../../../test/support/proves.ts';
import { openDocuments, type DocumentsOptions } from './index.ts';

const patient = { timeout: 120_000 };

function opened(options: DocumentsOptions) {
  const documents = openDocuments(options);
  onTestFinished(() => documents.close());
  return documents;
}

const text = (content: string) => new Blob([content]);
const named = { filename: 'x.txt' };

test(proves('U-10', 'so many documents are converted at a time, so many wait, and those beyond are refused'), patient, async () => {
  const documents = opened({ size: 1, most: 2 });
  const all = await Promise.allSettled(Array.from({ length: 5 }, (_, at) => documents.convert(text(`document ${at}`), { ...named, owner: String(at) })));
  expect(all.map((one) => (one.status === 'fulfilled' ? one.value.text : (one.reason as { reason?: string }).reason))).toEqual([
    'document 0',
    'document 1',
    'document 2',
    'busy',
    'busy',
  ]);
});

test('a document that takes too long or too much memory is refused, and the next one is converted', patient, async () => {
  const late = opened({ size: 1, limits: { bytes: 2 ** 40, seconds: 0.01, ocrSeconds: 0 } });
  await expect(late.convert(text('x'), named)).rejects.toMatchObject({ reason: 'too-much', message: expect.stringContaining('too long') });
  const large = opened({ size: 1, limits: { bytes: 1, seconds: 60, ocrSeconds: 0 } });
  await expect(large.convert(text('x'), named)).rejects.toMatchObject({ reason: 'too-much', message: expect.stringContaining('memory') });
  expect(await opened({ size: 1 }).convert(text('x'), named)).toEqual({ type: 'text/plain', text: 'x', places: [] });
});

test('whoever leaves while a document is converted, or waits, is not waited for', patient, async () => {
  const documents = opened({ size: 1 });
  const leaving = new AbortController();
  const [first, second] = [
    documents.convert(text('x'), { ...named, signal: leaving.signal }),
    documents.convert(text('y'), { ...named, signal: leaving.signal }),
  ];
  leaving.abort(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  await expect(second).rejects.toThrow('gone');
  expect((await documents.convert(text('z'), named)).text).toBe('z');
});

test('no process is started before the first document, and none waits a minute after the last', patient, async () => {
  const kill = vi.spyOn(ConversionChild.prototype, 'kill');
  onTestFinished(() => kill.mockRestore());
  let elapse = () => {};
  const clock: Clock = {
    ...systemClock,
    after(milliseconds, then) {
      if (milliseconds !== 60_000) return systemClock.after(milliseconds, then);
      elapse = then;
      return () => (elapse = () => {});
    },
  };
  const documents = opened({ size: 2, clock, limits: { bytes: 2 ** 40, seconds: 59, ocrSeconds: 0 } });
  elapse();
  expect(kill).not.toHaveBeenCalled();
  await documents.convert(text('x'), named);
  const once = kill.mock.calls.length;
  elapse();
  expect(kill.mock.calls.length).toBe(once + 1);
});

test('rows and pages are places, in order and without overlap', patient, async () => {
  const documents = opened({ size: 1 });
  const { text: markdown, places } = await documents.convert(text('a,b\n1,2\n\n3,4\n'), { filename: 'x.csv' });
  expect(places.map(({ start, end, row }) => [row, markdown.slice(start, end)])).toEqual([
    [1, '| a | b |\n| --- | --- |'],
    [2, '| 1 | 2 |'],
    [3, '| 3 | 4 |'],
  ]);
});

/** A mail of this many attachments. */
function mailOf(count: number): string {
  const head = 'From: a@example.org\r\nSubject: many\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="edge"\r\n\r\n';
  const part = '--edge\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename="part.txt"\r\n\r\nThe text of a part.\r\n';
  return `${head}${part.repeat(count)}--edge--\r\n`;
}

test('a hundred conversions are made for one document, at all levels together', patient, async () => {
  const asked: string[] = [];
  const mail = { type: 'message/rfc822', text: 'A mail.', places: [], attachments: Array.from({ length: 60 }, (_, at) => `${at}.eml`) };
  const { text: whole } = await joinedAttachments(
    { filename: 'x.eml', strategy: 'auto', records: false, inside: [] },
    async ({ inside }) => {
      asked.push(inside.join('.'));
      return inside.length < 2 ? mail : { type: 'text/plain', text: 'text', places: [] };
    },
    new AbortController().signal,
  );
  expect(asked).toHaveLength(100);
  expect(whole.match(/\(Not read: \d+ more attachments\./g)).toEqual(['(Not read: 23 more attachments.', '(Not read: 58 more attachments.']);
});

test('a document with all that is attached to it takes ten minutes at most', patient, async () => {
  let elapse = () => {};
  const clock: Clock = {
    ...systemClock,
    after(milliseconds, then) {
      if (milliseconds !== 600_000) return systemClock.after(milliseconds, then);
      elapse = then;
      return () => {};
    },
  };
  const documents = opened({ size: 1, clock });
  const convert = vi.spyOn(ConversionChild.prototype, 'convert');
  onTestFinished(() => convert.mockRestore());
  const whole = documents.convert(text(mailOf(90)), { filename: 'x.eml' });
  whole.catch(() => {});
  await expect.poll(() => convert.mock.calls.length, { timeout: 30_000 }).toBeGreaterThan(2);
  elapse();
  await expect(whole).rejects.toMatchObject({ reason: 'too-much', message: expect.stringContaining('too long') as string });
  expect(convert.mock.calls.length).toBeLessThan(90);
  expect((await documents.convert(text('z'), named)).text).toBe('z');
});
