import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import fc from 'fast-check';
import type { ToldRequest } from '#core/prompt-log';
import { compressed, decompressed, Lot, requestsIn } from './lot.ts';

const text = fc.string({ unit: 'binary', maxLength: 50 }).chain((some) => fc.constantFrom(some, `${some}\ud83d`, `\n${some}\t"`));
const told = fc.record({
  requestId: fc.stringMatching(/^req_[0-9A-Za-z]{1,22}$/),
  userId: fc.integer({ min: 1, max: 4 }),
  address: fc.constantFrom('', '127.0.0.1', '2001:db8::1'),
  prompt: text,
  promptLength: fc.nat(),
  answer: fc.record({ text, length: fc.nat() }),
});

const kept = ({ userId: _, ...request }: ToldRequest) => ({
  ...request,
  prompt: request.prompt.toWellFormed(),
  answer: { ...request.answer, text: request.answer.text.toWellFormed() },
});

test('what is told is found again in the batches of its user, in order, whatever its characters', () => {
  fc.assert(
    fc.property(fc.array(told, { maxLength: 200 }), (all) => {
      const lot = new Lot();
      for (const one of all) expect(lot.add(one)).toBe(true);
      expect(lot.requests).toBe(all.length);
      const batches = lot.batches();
      for (const userId of [1, 2, 3, 4]) {
        const own = batches.filter((batch) => batch.userId === userId);
        const wanted = all.filter((one) => one.userId === userId);
        expect(own.flatMap(({ requests }) => requests)).toEqual(wanted.map(({ requestId }) => requestId));
        expect(own.flatMap(({ plain }) => [...requestsIn(plain.toString())])).toEqual(wanted.map(kept));
      }
    }),
  );
});

const long = (at: number, userId: number, length: number): ToldRequest => ({
  requestId: `req_${at}`,
  userId,
  address: '',
  prompt: '€'.repeat(length),
  promptLength: length,
  answer: { text: '', length: 0 },
});

test('a batch is small enough to be opened for one request, however long texts are and however many', () => {
  const lot = new Lot();
  let requests = 0;
  while (lot.add(long(requests, requests % 2, 2000))) requests++;
  expect(requests).toBeGreaterThan(150);
  for (const { plain, requests: ids } of lot.batches()) {
    expect(plain.length).toBeLessThan(280_000);
    expect(ids.length).toBeLessThanOrEqual(256);
  }
  lot.clear();
  expect(lot.batches()).toEqual([]);
  for (let at = 0; at < 1000; at++) expect(lot.add(long(at, 1, 1))).toBe(true);
  expect(lot.batches().map(({ requests: ids }) => ids.length)).toEqual([256, 256, 256, 232]);
});

test('a batch comes back as it was, a small one as it is, up to a full lot', () => {
  const isSame = (bytes: Buffer) => decompressed(compressed(bytes)).equals(bytes);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5000 }), fc.constantFrom(1, 5), (bytes, times) =>
      isSame(Buffer.concat([Buffer.from('['), ...Array.from({ length: times }, () => bytes)])),
    ),
  );
  for (const bytes of [Buffer.alloc(1_048_576), randomBytes(1_048_576)]) expect(isSame(bytes)).toBe(true);
  const small = Buffer.from('[small');
  expect(compressed(small)).toBe(small);
});

test('similar requests of a user take less than a fifth of their space', () => {
  const lot = new Lot();
  for (let at = 0; at < 100; at++) lot.add({ ...long(at, 1, 0), prompt: `${'The same story. '.repeat(10)}The same question as before, number ${at}.` });
  const { plain } = lot.batches()[0]!;
  expect(compressed(plain).length).toBeLessThan(plain.length / 5);
});

test('what earlier versions stored without compression is read', () => {
  for (const text of ['5:helloYou said: hello', '["req_1","",1,0,1,0]\nx']) expect(decompressed(Buffer.from(text)).toString()).toBe(text);
});
