import { afterAll, describe, expect, test } from 'vitest';
import { systemClock } from '../async/clock.ts';
import { PatternTooSlow, openPatterns } from './index.ts';
import { entities, entityOf, type Entity } from './entities.ts';
import { masked } from './find.ts';
import { unscaledCpuMilliseconds } from '../../../test/support/cpu-time.ts';

const without = (text: string, ...kinds: readonly Entity[]) => masked(text, { type: 'entities', entities: kinds.length > 0 ? kinds : entities });

describe('personal data', () => {
  test.each([
    ['mail john.doe+x@mail.example.co.uk now', 'mail [EMAIL] now'],
    ['jürgen@müller.de, <a@b.example>.', '[EMAIL], <[EMAIL]>.'],
    ['a@b.example@c.example', '[EMAIL]@c.example'],
    ['4111111111111111', '[CREDIT_CARD]'],
    ['order 12 4111-1111-1111-1111, 3782 822463 10005', 'order 12 [CREDIT_CARD], [CREDIT_CARD]'],
    ['DE89 3704 0044 0532 0130 00 AND gb82west12345698765432', '[IBAN] AND [IBAN]'],
    ['at 192.168.1.254, [2001:db8::1] or ::ffff:10.0.0.1', 'at [IP_ADDRESS], [[IP_ADDRESS]] or [IP_ADDRESS]'],
    ['ssn 123-45-6789 or 123 45 6789', 'ssn [US_SSN] or [US_SSN]'],
    ['+49 (0)30 1234567, (555) 123-4567, 555-123-4567, 030/1234567, 0049 30 1234567', '[PHONE], [PHONE], [PHONE], [PHONE], [PHONE]'],
    ['card 4111\u00a01111\u00a01111\u00a01111 or 4111\u20111111\u20111111\u20111111', 'card [CREDIT_CARD] or [CREDIT_CARD]'],
    ['４１１１ １１１１ １１１１ １１１１, bob＠example．org, ＋４９ ３０ １２３４５６７', '[CREDIT_CARD], [EMAIL], [PHONE]'],
    ['٤١١١١١١١١١١١١١١١, ۴۱۱۱۱۱۱۱۱۱۱۱۱۱۱۱', '[CREDIT_CARD], [CREDIT_CARD]'],
  ])('is found in %j', (text, left) => {
    expect(without(text)).toBe(left);
  });

  test.each([
    '4111111111111112',
    '41111111111111111111111',
    '256.1.1.1, version 1.2.3.4.5, std::vector, 10:30:15',
    '000-12-3456, 666-12-3456, 123-00-4567, 2123-45-6789',
    '2026-11-21 10:30, 1 000 000, 1234567890, 12.50 EUR',
    'user@localhost, @handle, a @ b.c',
  ])('is not found in %j', (text) => {
    expect(without(text)).toBeUndefined();
  });

  test('is looked for by its kind alone', () => {
    expect(without('DE89 3704 0044 0532 0130 01, DE89370400440532013000X, XX89370400440532013000', 'iban')).toBeUndefined();
    expect(without('a@b.example 192.168.1.1', 'ip-address')).toBe('a@b.example [IP_ADDRESS]');
  });

  test('has other names that are in use', () => {
    expect(['CREDIT_CARD', 'Email Address', 'ip', 'US_SSN', 'IBAN_CODE', 'toString', 'name'].map(entityOf)).toEqual([
      'credit-card',
      'email',
      'ip-address',
      'us-ssn',
      'iban',
      undefined,
      undefined,
    ]);
  });

  test.each(['a', '1', '1 ', 'a.', 'a@', 'a:', '+1 ', '0 1', '(0', 'DE12 ', '12-', 'a@b.', '1.2.3.', '123 456 78 '])(
    'takes time in proportion to a text of many %j',
    (unit) => {
      const once = (text: string) => unscaledCpuMilliseconds(() => void without(text));
      const time = (length: number) => Math.min(...Array.from({ length: 3 }, () => once(unit.repeat(length / unit.length))));
      time(20_000);
      expect(time(160_000) / Math.max(time(40_000), 5)).toBeLessThan(16); // four times the text; quadratic time would be at least 16 times as long
    },
  );
});

describe('a pattern', () => {
  const finding = openPatterns(systemClock);
  afterAll(() => finding.close());
  const { signal } = new AbortController();
  const look = (pattern: string, texts: readonly string[], yesOrNo = false, owner = '1') =>
    finding.look({ sought: { type: 'pattern', pattern, mask: '[X]' }, texts, yesOrNo }, { owner, signal });

  test('is masked wherever it stands, and what matches nothing at all is nothing', async () => {
    expect(await look('b+|x*', ['abba', 'ac', ''])).toEqual(['a[X]a', undefined, undefined]);
  });

  test('may have flags before it, as other languages write them', async () => {
    expect(await look('(?i)secret', ['SECRET'], true)).toEqual(['']);
    expect(await look('secret', ['SECRET'], true)).toEqual([undefined]);
  });

  test('that takes too long is given up, and the next one is looked for again', async () => {
    const slow = look('(a+)+$', [`${'a'.repeat(50)}!`]);
    const next = look('b', ['abc']);
    await expect(slow).rejects.toBeInstanceOf(PatternTooSlow);
    expect(await next).toEqual(['a[X]c']);
  });

  test('in many texts of one owner does not hold up that of another', async () => {
    let given = 0;
    const slow = Array.from({ length: 4 }, () => look('(a+)+$', [`${'a'.repeat(50)}!`]).catch(() => given++));
    expect(await look('b', ['abc'], false, '2')).toEqual(['a[X]c']);
    expect(given).toBeLessThanOrEqual(1);
    await Promise.all(slow);
  });

  test('is not looked for once all is closed, whoever waited', async () => {
    const own = openPatterns(systemClock);
    const waiting = Array.from({ length: 3 }, () =>
      own.look({ sought: { type: 'pattern', pattern: '(a+)+$', mask: '' }, texts: [`${'a'.repeat(50)}!`], yesOrNo: true }, { owner: '1', signal }),
    );
    const ends = Promise.allSettled(waiting);
    await own.close();
    expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await expect(waiting[2]).rejects.toThrow('shutting down');
  });

  test('in a long text does not hold up a short one', async () => {
    const slow = look('(a+)+$', [`${'a'.repeat(70_000)}!`]);
    const first = await Promise.race([slow.catch(() => 'the long one'), look('b', ['abc']).then(() => 'the short one')]);
    expect(first).toBe('the short one');
    await expect(slow).rejects.toBeInstanceOf(Error);
  });

  test('is not looked for any more when nobody waits', async () => {
    const left = new AbortController();
    const first = look('b', ['abc']);
    const second = finding.look({ sought: { type: 'pattern', pattern: 'b', mask: '' }, texts: ['b'], yesOrNo: false }, { owner: '1', signal: left.signal });
    left.abort(new Error('gone'));
    await expect(second).rejects.toThrow('gone');
    await first;
  });
});
