import { describe, expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { diskError, testDisk, type TestDisk } from '../../../test/support/fakes/disk.ts';
import { began, chanceOf, inShort, pass, settled } from '../../../test/support/fakes/journals.ts';
import { testBooks } from '../../../test/support/fakes/shipped-books.ts';
import { shipHolder } from '../shipping/adopt.ts';
import { openJournal, type Journal } from './journal.ts';

const segmentBytes = 8192;

/** @param atTurnEnd absent: each record is a turn of its own */
async function opened({ disk = testDisk(), writer = 'main', minFreeBytes = 0, atTurnEnd = (run: () => void) => run() } = {}) {
  const clock = testClock();
  const told: string[] = [];
  const mended: string[] = [];
  const journal = await openJournal({
    disk,
    clock,
    folder: 'journal/h1',
    writer,
    minFreeBytes: () => minFreeBytes,
    segmentBytes,
    atTurnEnd,
    log: (problem) => told.push(problem),
    mended: (what) => mended.push(what),
  });
  await pass(clock, 0);
  return { disk, clock, journal, told, mended };
}

/** What the books say after a start that finds this disk. */
async function replayed(disk: TestDisk) {
  const sink = testBooks();
  const told: string[] = [];
  const parts = { sink, disk, folder: 'journal', refused: 'journal/refused.jsonl', log: (problem: string) => void told.push(problem) };
  await shipHolder({ ...parts, removing: false }, 'h1');
  const once = [...sink.rows.values()];
  sink.positions.clear();
  await shipHolder({ ...parts, removing: false }, 'h1');
  expect([...sink.rows.values()], 'replayed twice').toEqual(once);
  return { rows: once.map(inShort).toSorted(), told, sink };
}

/** Calls that begin, speak and settle in a random order, and what the books must say of them. */
function script(journal: Journal, chance: () => number, prefix = 'r') {
  const said = new Map<string, number>();
  const ended: string[] = [];
  let count = 0;
  const one = () => [...said.keys()][Math.floor(chance() * said.size)];
  return {
    step() {
      const dice = chance();
      const id = one();
      if (dice < 0.4 || id === undefined) {
        const next = `${prefix}${count++}`;
        void journal.began(began(next, { app: 'x'.repeat(chance() * 300) }));
        said.set(next, 0);
      } else if (dice < 0.6) {
        const tokens = said.get(id)! + Math.ceil(chance() * 100);
        journal.spoke(id, 0, tokens);
        said.set(id, tokens);
      } else {
        void journal.settled(settled(began(id)));
        said.delete(id);
        ended.push(`${id}/0 completed 5`);
      }
    },
    expected: () => [...ended, ...[...said].map(([id, tokens]) => `${id}/0 gateway-died ${tokens}`)].toSorted(),
  };
}

describe('a journal', () => {
  test.each([1, 2, 3, 4, 5, 6])('replayed after a crash before any of its writes says exactly what had happened: seed %i', async (seed) => {
    const { disk, clock, journal } = await opened();
    const chance = chanceOf(seed);
    const told = script(journal, chance);
    // What is in the middle of being written down may be there already.
    const crashes: { disk: TestDisk; before: readonly string[]; after?: readonly string[] }[] = [];
    disk.before = (act) => {
      if (act === 'write' || act === 'create' || act === 'remove') crashes.push({ disk: disk.copy(), before: told.expected() });
    };
    for (let steps = 0; steps < 150; steps++) {
      told.step();
      for (const crash of crashes) crash.after ??= told.expected();
      if (chance() < 0.1) await pass(clock, 50);
    }
    expect(disk.paths.length).toBeGreaterThan(4);
    crashes.push({ disk, before: told.expected() });
    disk.before = () => {};
    for (const { disk, before, after = before } of crashes) expect([before, after]).toContainEqual((await replayed(disk)).rows);
  });

  test('with its last line torn at any byte has lost that line and nothing else', async () => {
    const { disk, journal } = await opened();
    void journal.began(began('a'));
    journal.spoke('a', 0, 7);
    const path = 'journal/h1/main.00000000';
    const from = disk.bytes(path).indexOf(0);
    void journal.settled(settled(began('a')));
    const to = disk.bytes(path).indexOf(0);
    expect((await replayed(disk)).rows).toEqual(['a/0 completed 5']);
    for (let cut = from; cut < to; cut++) {
      const torn = disk.copy();
      torn.bytes(path).fill(0, cut);
      expect((await replayed(torn)).rows, `cut at ${cut}`).toEqual(['a/0 gateway-died 7']);
      torn.put(path, torn.bytes(path).subarray(0, cut));
      expect((await replayed(torn)).rows, `short by ${to - cut}`).toEqual(['a/0 gateway-died 7']);
    }
  });

  test('with a byte changed in the middle has lost that line, says so, and goes on behind it', async () => {
    const { disk, journal } = await opened();
    for (const id of ['a', 'b', 'c']) void journal.settled(settled(began(id)));
    const bytes = disk.bytes('journal/h1/main.00000000');
    bytes[bytes.indexOf('"requestId":"b"') + 14]! ^= 1;
    const { rows, told } = await replayed(disk);
    expect(rows).toEqual(['a/0 completed 5', 'c/0 completed 5']);
    expect(told.join()).toMatch(/bytes of the journal cannot be read: journal\/h1\/main, file 0, byte \d+/);
  });

  test('survives empty files, files of others and rubbish beside and inside it', async () => {
    const { disk, journal } = await opened();
    void journal.began(began('a'));
    journal.spoke('nobody', 0, 9);
    void journal.settled(settled(began('never-began')));
    disk.put('journal/h1/main.00000005', Buffer.alloc(0));
    disk.put('journal/h1/main.00000006', Buffer.from(Array.from({ length: 70_000 }, (_, at) => (at * 7919) % 251)));
    disk.put('journal/h1/other.00000000', Buffer.from('s12345678 {}\n'));
    disk.put('journal/h1/notes.txt', Buffer.from('mine'));
    disk.put('journal/h1/main.7.swp', Buffer.from('mine'));
    expect((await replayed(disk)).rows).toEqual(['a/0 gateway-died 0', 'never-began/0 completed 5']);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'after a power cut says all that was written 50 ms before, and of the rest nothing that never happened: seed %i',
    async (seed) => {
      const { disk, clock, journal } = await opened();
      const chance = chanceOf(seed);
      const told = script(journal, chance);
      for (let steps = 0; steps < 60; steps++) {
        told.step();
        if (chance() < 0.2) await pass(clock, 25);
      }
      await pass(clock, 75);
      const safe = told.expected();
      const later = script(journal, chance, 'later');
      for (let steps = 0; steps < 30; steps++) later.step();
      const possible = [...safe, ...later.expected()];
      const { rows } = await replayed(disk.powerCut(chance));
      expect(rows).toEqual(expect.arrayContaining(safe));
      for (const row of rows) expect(possible.some((one) => row === one || row.split(' ')[0] === one.split(' ')[0])).toBe(true);
    },
  );

  test('of calls that run for longer than many files keeps them, and books them once', async () => {
    const { disk, clock, journal } = await opened();
    void journal.began(began('long'));
    journal.spoke('long', 0, 42);
    for (let n = 0; n < 400; n++) {
      void journal.settled(settled(began(`r${n}`)));
      if (n % 5 === 0) await pass(clock, 50);
    }
    for (const path of disk.paths.slice(0, 6)) await disk.remove(path);
    const { rows } = await replayed(disk);
    expect(rows).toContain('long/0 gateway-died 42');
  });

  test('of calls that run for long keeps them in the order of their files, also where a write fails while they are carried', async () => {
    const { disk, clock, journal } = await opened();
    const long = Array.from({ length: 6 }, (_, n) => `long${n}`);
    for (const id of long) void journal.began(began(id));
    const writes = new Map<string, number>();
    let failures = 0;
    disk.before = (act, path) => {
      if (act !== 'write') return undefined;
      const count = (writes.get(path) ?? 0) + 1;
      writes.set(path, count);
      if (count !== 2 || writes.size % 3 !== 0) return undefined;
      failures++; // the first write to a file has calls carried into it, which is the second
      throw diskError('EIO');
    };
    for (let n = 0; n < 600; n++) {
      const before = journal.oldest;
      void journal.settled(settled(began(`r${n}`)));
      await pass(clock, 50);
      expect(journal.oldest).toBeGreaterThanOrEqual(before);
    }
    disk.before = () => undefined;
    await pass(clock, 2100);
    expect(failures).toBeGreaterThan(5);
    expect(journal.oldest).toBeGreaterThan(writes.size / 2);
    const { rows } = await replayed(disk);
    for (const id of long) expect(rows.filter((row) => row.startsWith(`${id}/`))).toEqual([`${id}/0 gateway-died 0`]);
  });

  test('takes a record that is longer than a file usually is', async () => {
    const { disk, journal } = await opened();
    void journal.settled(settled(began('a')));
    void journal.settled(settled(began('long', { face: 'f'.repeat(300_000) })));
    void journal.settled(settled(began('b')));
    expect((await replayed(disk)).rows).toEqual(['a/0 completed 5', 'b/0 completed 5', 'long/0 completed 5']);
  });
});

describe('the records of one turn of the event loop', () => {
  /** A journal whose turns end when the test says so. */
  async function inTurns(disk = testDisk()) {
    const due: (() => void)[] = [];
    const made = await opened({ disk, atTurnEnd: (run) => void due.push(run) });
    return { ...made, endTurn: () => due.splice(0).forEach((run) => run()) };
  }

  /** Which of these promises have an end, once all that can be done without waiting is done. */
  async function ends(promises: Readonly<Record<string, Promise<void>>>) {
    const found: Record<string, string> = {};
    for (const [name, promise] of Object.entries(promises))
      promise.then(
        () => (found[name] = 'written'),
        (fault: Error) => (found[name] = fault.message),
      );
    await new Promise(setImmediate);
    return found;
  }

  test('are one write at its end, and nobody is told before it', async () => {
    const { disk, journal, endTurn } = await inTurns();
    const promises = { a: journal.began(began('a')), b: journal.began(began('b')), end: journal.settled(settled(began('a'))) };
    journal.spoke('b', 0, 7);
    const { writes } = disk;
    expect(await ends(promises)).toEqual({});
    expect((await replayed(disk.copy())).rows).toEqual([]);
    endTurn();
    expect(disk.writes).toBe(writes + 1);
    expect(await ends(promises)).toEqual({ a: 'written', b: 'written', end: 'written' });
    expect((await replayed(disk)).rows).toEqual(['a/0 completed 5', 'b/0 gateway-died 7']);
  });

  test('that no disk takes begin no call and lose no end, also where a part of them is on the disk', async () => {
    const { disk, clock, journal, endTurn } = await inTurns();
    void journal.began(began('before'));
    endTurn();
    disk.before = (act) => {
      if (act === 'write') return 700; // this many bytes of it, then the end
      if (act === 'create') throw diskError('EIO');
      return undefined;
    };
    const promises = { new: journal.began(began('new')), end: journal.settled(settled(began('before'))) };
    endTurn();
    expect(await ends(promises)).toEqual({ new: 'Usage cannot be recorded right now.', end: 'written' });
    expect(() => journal.began(began('later'))).toThrow('Usage cannot be recorded right now.');
    disk.before = () => undefined;
    await pass(clock, 2100);
    endTurn();
    expect(journal.trouble).toBeUndefined();
    expect((await replayed(disk)).rows).toEqual(['before/0 completed 5']);
  });

  test('are written before a full file is left for the next', async () => {
    const { disk, journal, endTurn } = await inTurns();
    const ids = Array.from({ length: 40 }, (_, n) => `r${n}`);
    const promises = Object.fromEntries(ids.map((id) => [id, journal.settled(settled(began(id)))]));
    endTurn();
    expect(await ends(promises)).toEqual(Object.fromEntries(ids.map((id) => [id, 'written'])));
    expect((await replayed(disk)).rows).toHaveLength(40);
  });
});

describe('on a disk in trouble', () => {
  test('a full one refuses new calls with 503 and a time, takes what runs into the file made before, and all is well when there is room again', async () => {
    const { disk, clock, journal, told, mended } = await opened();
    const running = Array.from({ length: 16 }, (_, n) => `r${n}`);
    for (const id of running) void journal.began(began(id));
    disk.capacity = disk.paths.length * segmentBytes;
    for (let n = 0; n < 11; n++) void journal.settled(settled(began(`r${n}`)));
    await pass(clock, 1100);
    for (const id of running.slice(11)) void journal.settled(settled(began(id)));
    await pass(clock, 1100);
    expect(journal.trouble).toMatchObject({ code: 'overloaded', details: { retryAfter: 5 } });
    expect(() => journal.began(began('new'))).toThrow('Usage cannot be recorded right now.');
    expect((await replayed(disk.copy())).rows).toEqual(running.map((id) => `${id}/0 completed 5`).toSorted());
    disk.capacity = Infinity;
    await pass(clock, 1100);
    expect(journal.trouble).toBeUndefined();
    void journal.began(began('new'));
    expect([told, mended]).toEqual([[expect.stringMatching(/cannot be written/)], ['The journal can be written again.']]);
    expect((await replayed(disk)).rows).toContain('new/0 gateway-died 0');
  });

  test('what even the file made before has no room for is held, and written when there is room', async () => {
    const { disk, clock, journal } = await opened();
    disk.capacity = disk.paths.length * segmentBytes;
    const calls = Array.from({ length: 60 }, (_, n) => `r${n}`);
    for (const id of calls) void journal.settled(settled(began(id)));
    await pass(clock, 1100);
    expect((await replayed(disk.copy())).rows.length).toBeLessThan(60);
    expect(journal.trouble?.code).toBe('overloaded');
    const files = disk.paths.length;
    await pass(clock, 10_000);
    expect(disk.paths.length).toBe(files);
    disk.capacity = Infinity;
    await pass(clock, 2100);
    expect(journal.trouble).toBeUndefined();
    expect((await replayed(disk)).rows).toHaveLength(60);
  });

  test('what was held keeps its place before what comes later', async () => {
    const { disk, clock, journal } = await opened();
    disk.capacity = disk.paths.length * segmentBytes;
    const calls = Array.from({ length: 60 }, (_, n) => `r${n}`);
    for (const id of calls.slice(0, 50)) void journal.settled(settled(began(id)));
    disk.capacity = Infinity;
    for (const id of calls.slice(50)) void journal.settled(settled(began(id)));
    await pass(clock, 2100);
    expect([...(await replayed(disk)).sink.rows.values()].map(({ requestId }) => requestId)).toEqual(calls);
  });

  test('less room than `minFreeBytes` is trouble within a second, and no more when there is more', async () => {
    const { disk, clock, journal } = await opened({ minFreeBytes: 1_000_000 });
    expect(journal.trouble).toBeUndefined();
    disk.capacity = 900_000;
    await pass(clock, 1100);
    expect(journal.trouble?.code).toBe('overloaded');
    disk.capacity = 2_000_000;
    await pass(clock, 1100);
    expect(journal.trouble).toBeUndefined();
  });

  test.each([1, 2, 3, 4])(
    'a sync that fails is not tried again: what it may have lost is written elsewhere, and outlives a power cut: seed %i',
    async (seed) => {
      const { disk, clock, journal } = await opened();
      const chance = chanceOf(seed);
      const told = script(journal, chance);
      let broken = '';
      disk.before = (act, path) => {
        if (path === broken) throw diskError('EIO');
        if (act === 'sync' && chance() < 0.3) {
          broken = path;
          throw diskError('EIO');
        }
      };
      for (let steps = 0; steps < 80; steps++) {
        if (!journal.trouble) told.step();
        await pass(clock, 50);
      }
      expect(broken).not.toBe('');
      disk.before = () => {};
      await pass(clock, 2100);
      expect(journal.trouble).toBeUndefined();
      const { rows } = await replayed(disk.powerCut(() => 0.9));
      expect(rows).toEqual(told.expected());
    },
  );

  test('what is written while a sync is under way is synced by the next', async () => {
    const { disk, clock, journal } = await opened();
    void journal.settled(settled(began('a')));
    disk.before = (act) => {
      if (act !== 'sync') return;
      disk.before = () => {};
      void Promise.resolve().then(() => journal.settled(settled(began('b'))));
    };
    await pass(clock, 200);
    expect((await replayed(disk.powerCut(() => 0.9))).rows).toEqual(['a/0 completed 5', 'b/0 completed 5']);
  });

  test('a write that fails goes to the next file, and no new call comes until the disk has proven well', async () => {
    const { disk, clock, journal } = await opened();
    void journal.began(began('a'));
    disk.before = (act, path) => {
      if (act === 'write' && path.endsWith('.00000000')) throw diskError('EIO');
    };
    void journal.settled(settled(began('a')));
    expect(journal.trouble?.code).toBe('overloaded');
    await pass(clock, 1100);
    expect(journal.trouble).toBeUndefined();
    expect((await replayed(disk)).rows).toEqual(['a/0 completed 5']);
  });

  test('one that cannot be written at all at the start is trouble and no crash, and mended later', async () => {
    const disk = testDisk();
    disk.before = () => {
      throw diskError('EIO');
    };
    const { clock, journal } = await opened({ disk });
    expect(() => journal.began(began('a'))).toThrow('Usage cannot be recorded right now.');
    disk.before = () => {};
    await pass(clock, 1100);
    void journal.began(began('a'));
    expect((await replayed(disk)).rows).toEqual(['a/0 gateway-died 0']);
  });
});

test('a closed journal is wholly synced, leaves no empty file, and takes no call', async () => {
  const { disk, journal } = await opened();
  void journal.settled(settled(began('a')));
  await journal.close();
  expect(() => journal.began(began('b'))).toThrow('Usage cannot be recorded right now.');
  expect((await replayed(disk.powerCut(() => 0.9))).rows).toEqual(['a/0 completed 5']);
  expect(disk.paths).toEqual(['journal/h1/main.00000000']);
});

test('what settles after the journal was closed is written nowhere, and booked by the next start', async () => {
  const { disk, journal, told } = await opened();
  void journal.began(began('a'));
  void journal.began(began('b'));
  void journal.settled(settled(began('a')));
  await journal.close();
  const writes = disk.writes;
  journal.spoke('b', 0, 7);
  void journal.settled(settled(began('b')));
  expect(disk.writes).toBe(writes);
  expect(told).toEqual(['Request b settled after its journal was closed: the next start books it.']);
  expect((await replayed(disk)).rows).toEqual(['a/0 completed 5', 'b/0 gateway-died 0']);
});

test('two writers of one holder write side by side', async () => {
  const disk = testDisk();
  const [{ journal: one }, { journal: two }] = [await opened({ disk, writer: 'w1' }), await opened({ disk, writer: 'w2' })];
  const [first, second] = [script(one, chanceOf(1), 'a'), script(two, chanceOf(2), 'b')];
  for (let steps = 0; steps < 100; steps++) {
    first.step();
    second.step();
  }
  expect((await replayed(disk)).rows).toEqual([...first.expected(), ...second.expected()].toSorted());
});
