import { describe, expect, test } from 'vitest';
import { began, settled } from '../../../test/support/fakes/journals.ts';
import { beganJson, callOf, firstRecord, recordAt, recordBytes, settledJson, spokeJson, writeRecord } from './record.ts';

const line = (json: string, kind: 'settled' | 'spoke' = 'settled') => {
  const bytes = Buffer.alloc(recordBytes(json));
  expect(writeRecord(bytes, 0, kind, json)).toBe(bytes.length);
  return bytes;
};

describe('a record', () => {
  test('is a line that reads as it was written, and fits exactly', () => {
    const bytes = line('{"a":"ä€😀"}');
    expect(bytes.toString()).toMatch(/^s[0-9a-f]{8} \{"a":"ä€😀"\}\n$/);
    expect(recordAt(bytes, 0)).toMatchObject({ kind: 'settled', from: 0, to: bytes.length });
    expect(recordAt(bytes, 0)!.json.toString()).toBe('{"a":"ä€😀"}');
    expect(writeRecord(bytes, 1, 'settled', '{"a":"ä€😀"}')).toBeUndefined();
  });

  test('is not taken for one with any of its bytes changed or its end missing', () => {
    const bytes = line('{"requestId":"r","step":0}');
    for (let at = 0; at < bytes.length; at++) {
      for (const value of [0, 0x62, 0x70, 0x20, 0x41, 0xff]) {
        if (bytes[at] === value) continue;
        const changed = Buffer.from(bytes);
        changed[at] = value;
        expect(recordAt(changed, 0), `byte ${at} as ${value}`).toBeUndefined();
      }
      expect(recordAt(bytes.subarray(0, at), 0)).toBeUndefined();
    }
  });

  test('is found behind damage, behind zeros, and behind what looks like its beginning', () => {
    const good = line('{"n":1}', 'spoke');
    for (const before of [Buffer.alloc(1000), Buffer.from('s12345678 {"torn'), Buffer.from('b00000000 {}\nrubbish\n'), Buffer.from([0xff, 10, 0, 0])]) {
      const torn = before.includes(10) || before[0] === 0 ? before : Buffer.concat([before, Buffer.alloc(3)]);
      expect(firstRecord(Buffer.concat([torn, good, Buffer.alloc(10)]))).toMatchObject({ kind: 'spoke', from: torn.length });
    }
    expect(firstRecord(Buffer.from('nothing good\nat all'))).toBeUndefined();
  });

  test('names its call in the same words, whatever its kind and whatever order its fields were given in', () => {
    const call = began('a","step":9,"b', { step: 2 });
    const { requestId, step, ...rest } = settled(call);
    const names = [beganJson(call), spokeJson('a","step":9,"b', 2, 7), settledJson({ ...rest, step, requestId })].map((json) => callOf(Buffer.from(json)));
    expect(new Set(names)).toEqual(new Set([String.raw`{"requestId":"a\",\"step\":9,\"b","step":2`]));
    expect(callOf(Buffer.from(settledJson(settled(began('req_1', { step: 12 })))))).toBe('{"requestId":"req_1","step":12');
    expect(callOf(Buffer.from('{"at":1,"step":12,"requestId":"req_1"}'))).toBe('{"requestId":"req_1","step":12');
  });

  test('of a row is the row, with what strangers wrote cut and cleaned', () => {
    const row = settled(began('r', { app: 'x'.repeat(500), model: 'a\0b' }), { servedModel: 'half \ud83d' });
    expect(JSON.parse(settledJson(row))).toMatchObject({
      app: 'x'.repeat(200),
      model: 'a\ufffdb',
      servedModel: 'half \ufffd',
      teamIds: [3],
    });
  });

  test('of a row has nothing in any of its texts that the database refuses, and keeps what only looks so', () => {
    const attempt = { provider: 'p', model: 'a\0b\ud800', milliseconds: 1, message: '\\u0000 \\ud800 \u0001 😀 \\' };
    const { attempts } = JSON.parse(settledJson(settled(began('r'), { attempts: [attempt] }))) as { attempts: unknown };
    expect(attempts).toEqual([{ ...attempt, model: 'a\ufffdb\ufffd' }]);
  });
});
