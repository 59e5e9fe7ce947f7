import { expect, test } from 'vitest';
import { testDisk } from '../../../test/support/fakes/disk.ts';
import { recordBytes, writeRecord } from './record.ts';
import { Tail } from './tail.ts';

const line = (json: string) => {
  const bytes = Buffer.alloc(recordBytes(json));
  writeRecord(bytes, 0, 'settled', json);
  return bytes;
};

function opened() {
  const disk = testDisk();
  const told: string[] = [];
  const tail = new Tail({ disk, folder: 'j', writer: 'w', log: (problem) => told.push(problem) });
  const file = (number: number, ...parts: Buffer[]) => disk.put(`j/w.0000000${number}`, Buffer.concat([...parts, Buffer.alloc(4096)]));
  const read = async (ended = false) => (await tail.read(ended)).map(({ json }) => json.toString());
  return { disk, tail, file, read, told };
}

test('half a record at the end of a living journal is waited for, not passed over', async () => {
  const { file, read, told } = opened();
  const [a, b] = [line('{"n":1}'), line('{"n":2}')];
  file(0, a, b.subarray(0, 9));
  expect(await read()).toEqual(['{"n":1}']);
  expect(await read()).toEqual([]);
  file(1);
  expect(await read()).toEqual([]);
  file(0, a, b);
  expect(await read()).toEqual(['{"n":2}']);
  expect(told).toEqual([]);
});

test('a file is left for the next one only when that has been begun, and is looked at once more before', async () => {
  const { disk, file, read } = opened();
  file(0, line('{"n":1}'));
  file(1);
  expect(await read()).toEqual(['{"n":1}']);
  expect(await read()).toEqual([]);
  // The writer fills up the first file and goes on in the second, between our looking at the first and at the second.
  disk.before = (act, path) => {
    if (act !== 'read' || !path.endsWith('1')) return;
    disk.before = () => {};
    file(0, line('{"n":1}'), line('{"n":2}'));
    file(1, line('{"n":3}'));
  };
  expect(await read()).toEqual(['{"n":2}']);
  expect(await read()).toEqual(['{"n":3}']);
});

test('what looked broken because it was read while it was written is read again', async () => {
  const { disk, file, read, told } = opened();
  const [a, b] = [line('{"n":1}'), line('{"n":2}')];
  file(0, a.subarray(0, 5), Buffer.alloc(a.length - 5), b);
  let reads = 0;
  disk.before = (act) => {
    if (act === 'read' && ++reads === 3) file(0, a, b);
  };
  expect(await read()).toEqual(['{"n":1}', '{"n":2}']);
  expect(told).toEqual([]);
});

test('what is broken in the middle is told once, and the rest is read', async () => {
  const { file, read, told } = opened();
  file(0, Buffer.from('s00000000 {"n":1}\n'), line('{"n":2}'));
  expect(await read()).toEqual(['{"n":2}']);
  expect(await read()).toEqual([]);
  expect(told).toEqual(['18 bytes of the journal cannot be read: j/w, file 0, byte 0.']);
});

test('a file that is missing in the middle is stepped over, and a long journal is read in parts', async () => {
  const { file, read } = opened();
  const long = `{"text":"${'x'.repeat(400_000)}"}`;
  file(1, ...Array.from({ length: 10 }, () => line(long)));
  file(4, line('{"n":4}'));
  const parts: number[] = [];
  for (;;) {
    const found = await read(true);
    if (found.length === 0) break;
    parts.push(found.length);
  }
  expect(parts.reduce((sum, part) => sum + part)).toBe(11);
  expect(Math.max(...parts)).toBeLessThan(4);
});
