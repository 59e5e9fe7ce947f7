import { describe, expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { testDisk } from '../../../test/support/fakes/disk.ts';
import { began, chanceOf, inShort, pass, settled } from '../../../test/support/fakes/journals.ts';
import { testBooks } from '../../../test/support/fakes/shipped-books.ts';
import { adoptJournals } from './adopt.ts';
import { openJournal } from '../journal/journal.ts';
import { openShipper } from './shipper.ts';

const away = () => ({ instead: new Fault('overloaded', 'The database is away.') });

/** @param ofWorkers the journal is that of a worker, not of the process that ships */
async function startShipping({ disk = testDisk(), sink = testBooks(), clock = testClock(), holder = 'h1', writer = 'main', ofWorkers = false } = {}) {
  const told: string[] = [];
  const mendings: string[] = [];
  const log = (problem: string) => void told.push(problem);
  const mended = (what: string) => void mendings.push(what);
  const atTurnEnd = (run: () => void) => run(); // each record is a turn of its own
  const journal = await openJournal({ disk, clock, folder: `journal/${holder}`, writer, minFreeBytes: () => 0, segmentBytes: 8192, atTurnEnd, log, mended });
  const shipper = openShipper({ sink, disk, clock, folder: 'journal', holder, ...(ofWorkers ? {} : { own: journal }), log, mended });
  const booked = () => [...sink.rows.values()].map(inShort).toSorted();
  return { disk, sink, clock, journal, shipper, told, mendings, booked };
}

const names = (count: number) => Array.from({ length: count }, (_, n) => `r${n}`);
const completed = (ids: readonly string[]) => ids.map((id) => `${id}/0 completed 5`).toSorted();

describe('shipping', () => {
  test('reads no file of the journal that its own process writes, unless rows are too many for its memory', async () => {
    const { disk, sink, clock, journal, booked } = await startShipping();
    const read: string[] = [];
    disk.before = (act, path) => void (act === 'read' && read.push(path));
    for (const id of names(50)) void journal.settled(settled(began(id)));
    await pass(clock, 400);
    expect([booked(), read]).toEqual([completed(names(50)), []]);
    sink.fails = away;
    const large = Array.from({ length: 40 }, (_, n) => `large${n}`);
    for (const id of large) void journal.settled(settled(began(id), { face: 'f'.repeat(250_000) }));
    await pass(clock, 400);
    sink.fails = () => undefined;
    await pass(clock, 20_000);
    expect(booked()).toEqual([...completed(names(50)), ...completed(large)].toSorted());
    expect(read.length).toBeGreaterThan(0);
    read.length = 0;
    void journal.settled(settled(began('last')));
    await pass(clock, 400);
    expect(booked()).toContain('last/0 completed 5');
    expect(read).toEqual([]);
  });

  test.each([false, true])('rows that come while others are being shipped wait for the next round (of workers: %s)', async (ofWorkers) => {
    const { sink, clock, journal, booked } = await startShipping({ ofWorkers });
    await pass(clock, 100);
    let more = 20;
    sink.fails = () => void (more-- > 0 && journal.settled(settled(began(`more${more}`))));
    void journal.settled(settled(began('first')));
    await pass(clock, 1000);
    expect(sink.shipments.length).toBeGreaterThan(2);
    expect(sink.shipments.length).toBeLessThan(8);
    await pass(clock, 5000);
    expect(booked()).toHaveLength(21);
  });

  test.each([false, true])(
    'what is asked for at once waits for no round, and however often it is asked, rounds have a pause (of workers: %s)',
    async (ofWorkers) => {
      const { sink, clock, journal, shipper } = await startShipping({ ofWorkers });
      await pass(clock, 100);
      void journal.settled(settled(began('first')));
      void shipper.shipWritten();
      await pass(clock, 0);
      expect(sink.shipments).toHaveLength(1);
      let shipped = 0;
      for (let n = 0; n < 500; n++) {
        void journal.settled(settled(began(`more${n}`)));
        void shipper.shipWritten().then(() => shipped++);
        await pass(clock, 2);
      }
      expect(sink.shipments.length).toBeLessThan(25);
      await pass(clock, 100);
      expect([shipped, sink.rows.size]).toEqual([500, 501]);
    },
  );

  test('what was read of a journal before a read of it failed is shipped', async () => {
    const { disk, clock, journal, booked } = await startShipping({ writer: 'w1', ofWorkers: true });
    await pass(clock, 100);
    let reads = 0;
    disk.before = (act) => {
      if (act === 'read' && ++reads === 2) throw new Error('EIO');
    };
    for (const id of names(3)) void journal.settled(settled(began(id)));
    await pass(clock, 5000);
    expect(reads).toBeGreaterThan(2);
    expect(booked()).toEqual(completed(names(3)));
  });

  test('uses the memory of a shipment again, but not that of one that failed: it may still be on its way', async () => {
    const { sink, clock, journal, booked } = await startShipping();
    const given: Uint8Array[] = [];
    let failures = 1;
    sink.fails = ({ rows }) => {
      if (rows.length > 0) given.push(rows);
      return rows.length > 0 && failures-- > 0 ? away() : undefined;
    };
    for (const id of names(4)) {
      void journal.settled(settled(began(id)));
      await pass(clock, 5000);
    }
    expect(booked()).toEqual(completed(names(4)));
    const [failed, again, ...others] = given.map(({ buffer }) => buffer);
    expect(again).not.toBe(failed);
    expect(others.map((one) => one === again)).toEqual([true, true, true]);
    expect(JSON.parse(Buffer.from(given[0]!).toString())).toMatchObject([{ requestId: names(1)[0] }]);
  });

  test('brings a settled row into the books within 250 ms, once, and asks nothing of them while there is nothing', async () => {
    const { sink, clock, journal, shipper, booked } = await startShipping();
    void journal.began(began('a'));
    await pass(clock, 2000);
    expect(sink.shipments).toHaveLength(0);
    void journal.settled(settled(began('a')));
    expect(shipper.pendingRows).toBe(1);
    await pass(clock, 250);
    await pass(clock, 2000);
    expect(booked()).toEqual(['a/0 completed 5']);
    expect(sink.shipments).toHaveLength(1);
    expect(shipper.pendingRows).toBe(0);
  });

  test('a row that differs from the one that is booked under its request and step is an error in the log, and is kept in a file', async () => {
    const { sink, clock, disk, journal, told } = await startShipping();
    await sink.ship({ holder: 'h0', journal: 'h0/main', from: 0, to: 1, rows: Buffer.from(JSON.stringify([settled(began('a'))])) });
    void journal.settled({ ...settled(began('a')), outputTokens: 99 });
    void journal.settled(settled(began('b')));
    await pass(clock, 1000);
    expect(told).toEqual(['Another row is booked under the request a and its step 0: this one is left out, and kept in journal/refused.jsonl.']);
    expect(JSON.parse(disk.bytes('journal/refused.jsonl').toString())).toMatchObject({ requestId: 'a', outputTokens: 99 });
  });

  test('rows of workers that the database does not take count as pending until it does', async () => {
    const { sink, clock, shipper, journal: worker } = await startShipping({ writer: 'w1', ofWorkers: true });
    void worker.settled(settled(began('first')));
    await pass(clock, 1000);
    expect(shipper.pendingRows).toBe(0);
    sink.fails = away;
    for (const id of names(3)) void worker.settled(settled(began(id)));
    await pass(clock, 1000);
    expect(shipper.pendingRows).toBe(3);
    sink.fails = () => undefined;
    await pass(clock, 10_500);
    expect(shipper.pendingRows).toBe(0);
  });

  test('a row is exactly what was settled', async () => {
    const { sink, clock, journal } = await startShipping();
    const row = settled(began('a', { model: 'ä€😀' }));
    void journal.settled(row);
    await pass(clock, 250);
    expect(sink.rows.get('a 0')).toEqual(row);
  });

  test('removes files when all in them is in the books, but none that knows of a running call', async () => {
    const { disk, clock, journal, sink } = await startShipping();
    void journal.began(began('long'));
    for (const id of names(60)) void journal.settled(settled(began(id)));
    await pass(clock, 1000);
    expect(disk.paths[0]).toBe('journal/h1/main.00000000');
    void journal.settled(settled(began('long')));
    for (const id of names(120).slice(60)) void journal.settled(settled(began(id)));
    await pass(clock, 1000);
    expect(disk.paths.length).toBeLessThanOrEqual(2);
    expect(sink.rows.size).toBe(121);
  });

  test('a database that is away costs no row, one line when it goes and one when it is back, and is asked less and less often', async () => {
    const { sink, clock, journal, shipper, told, mendings, booked } = await startShipping();
    let asked = 0;
    sink.fails = () => (asked++, away());
    const ids = names(700);
    for (const [n, id] of ids.entries()) {
      void journal.settled(settled(began(id)));
      if (n % 100 === 0) await pass(clock, 5000);
    }
    await pass(clock, 25_000);
    expect(asked).toBeLessThan(20);
    expect(shipper.pendingRows).toBe(700);
    sink.fails = () => undefined;
    await pass(clock, 10_500);
    expect(booked()).toEqual(completed(ids));
    expect([told, mendings]).toEqual([[expect.stringMatching(/cannot be shipped/)], [expect.stringMatching(/is shipped again/)]]);
  });

  test('a file that was overtaken while it was made ready is not used: its rows would never be found', async () => {
    const { disk, clock, journal, booked } = await startShipping();
    const ids = names(200);
    for (const id of ids.slice(0, 10)) void journal.settled(settled(began(id)));
    disk.before = (act) => {
      if (act !== 'fill') return;
      disk.before = () => {};
      for (const id of ids.slice(10, 60)) void journal.settled(settled(began(id)));
    };
    for (const id of ids.slice(60)) {
      await pass(clock, 100);
      void journal.settled(settled(began(id)));
    }
    await pass(clock, 500);
    expect(booked()).toEqual(completed(ids));
  });

  test('a database that was put back to an earlier day gets all that is still there', async () => {
    const { sink, clock, journal, booked } = await startShipping();
    for (const id of names(10)) {
      void journal.settled(settled(began(id)));
      await pass(clock, 250);
    }
    (sink.rows as Map<string, unknown>).clear();
    sink.positions.clear();
    void journal.settled(settled(began('r10')));
    await pass(clock, 2000);
    expect(booked()).toEqual(completed(names(11)));
  });

  test('one row that can never be written is left out, told, and kept in a file; all others are there', async () => {
    const { sink, disk, clock, journal, told, booked } = await startShipping();
    sink.refuses = ({ requestId }) => requestId === 'r13' || requestId === 'r59';
    for (const id of names(60)) void journal.settled(settled(began(id)));
    await pass(clock, 1000);
    expect(booked()).toEqual(completed(names(60).filter((id) => id !== 'r13' && id !== 'r59')));
    expect(told).toEqual([expect.stringMatching(/left out/), expect.stringMatching(/left out/)]);
    expect(
      disk
        .bytes('journal/refused.jsonl')
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).requestId),
    ).toEqual(['r13', 'r59']);
    expect([...sink.positions.values()]).toEqual([sink.shipments.at(-1)!.to]);
  });

  test.each([1, 2, 3, 4, 5, 6])(
    'books every row once with batches refused, answers lost, files removed and positions quarrelled about: seed %i',
    async (seed) => {
      const chance = chanceOf(seed);
      const { sink, clock, journal, booked } = await startShipping();
      sink.fails = () => {
        const dice = chance();
        if (dice < 0.2) return away();
        if (dice < 0.4) return { answer: new Fault('overloaded', 'The answer was lost.') };
        return dice < 0.45 ? { instead: new Fault('conflict', 'Somebody else was here.') } : undefined;
      };
      const ids = names(300);
      for (const id of ids) {
        void journal.began(began(id));
        void journal.settled(settled(began(id)));
        if (chance() < 0.2) await pass(clock, 200);
      }
      sink.fails = () => undefined;
      await pass(clock, 11_000);
      expect(booked()).toEqual(completed(ids));
    },
  );
});

describe('the end and a new start', () => {
  test('an orderly end ships everything, gives back the leases and leaves nothing', async () => {
    const { sink, disk, journal, shipper, booked } = await startShipping();
    for (const id of names(40)) void journal.settled(settled(began(id)));
    await journal.close();
    expect(await shipper.flush(5000)).toBe(true);
    expect(booked()).toEqual(completed(names(40)));
    expect([disk.paths, sink.closed]).toEqual([[], ['h1']]);
  });

  test('an end without a database does not last for ever, and the next start ships what was left', async () => {
    const first = await startShipping();
    first.sink.fails = away;
    void first.journal.settled(settled(began('a')));
    await first.journal.close();
    const ended = first.shipper.flush(3000);
    await pass(first.clock, 4000);
    expect(await ended).toBe(false);
    first.sink.fails = () => undefined;
    const second = await startShipping({ ...first, holder: 'h2' });
    await pass(second.clock, 500);
    expect(second.booked()).toEqual(['a/0 completed 5']);
    expect(first.sink.closed).toEqual(['h1']);
    expect(second.disk.paths.some((path) => path.startsWith('journal/h1/'))).toBe(false);
  });

  test.each([1, 2, 3, 4, 5, 6])('after kill after kill every answered call is booked once, every cut one as died: seed %i', async (seed) => {
    const chance = chanceOf(seed);
    let disk = testDisk();
    const sink = testBooks();
    const expected: string[] = [];
    for (let boot = 0; boot < 8; boot++) {
      const { clock, journal } = await startShipping({ disk, sink, holder: `boot${boot}` });
      sink.fails = () => (chance() < 0.3 ? away() : undefined);
      const running: string[] = [];
      for (let n = 0; n < 40; n++) {
        const id = `b${boot}r${n}`;
        void journal.began(began(id));
        if (chance() < 0.8) {
          void journal.settled(settled(began(id)));
          expected.push(`${id}/0 completed 5`);
        } else running.push(id);
        if (chance() < 0.3) await pass(clock, 100);
      }
      expected.push(...running.map((id) => `${id}/0 gateway-died 0`));
      disk = disk.processDied();
    }
    sink.fails = () => undefined;
    const { clock, booked } = await startShipping({ disk, sink, holder: 'last' });
    await pass(clock, 1000);
    expect(booked()).toEqual(expected.toSorted());
    expect(new Set(sink.closed).size).toBe(8);
    expect(disk.paths.every((path) => path.startsWith('journal/last/'))).toBe(true);
  });

  test('a crash before or behind any act on disk and database leaves every answered call booked once, and every other as died', async () => {
    let crash = 1;
    for (let crashed = true; crashed; crash++) {
      crashed = false;
      let acts = 0;
      const sink = testBooks();
      const first = await startShipping({ sink });
      const shipped = sink.ship;
      const act = () => {
        if (crashed || ++acts < crash) return;
        crashed = true;
        next = first.disk.processDied();
      };
      let next = first.disk;
      first.disk.before = act;
      const never = new Promise<never>(() => {});
      sink.ship = async (batch) => {
        act();
        if (crashed) return never;
        const leftOut = await shipped(batch);
        act();
        return crashed ? never : leftOut;
      };
      const expected: string[] = [];
      for (let n = 0; n < 45 && !crashed; n++) {
        void first.journal.began(began(`r${n}`));
        expected[n] = `r${n}/0 gateway-died 0`;
        if (n % 7 === 0) continue;
        if (!crashed) void first.journal.settled(settled(began(`r${n}`)));
        expected[n] = `r${n}/0 completed 5`;
        if (n % 5 === 0) await pass(first.clock, 100);
      }
      if (!crashed) await pass(first.clock, 500);
      const inFlight = crashed ? expected.pop()!.split('/')[0]! : 'nobody';
      if (!crashed) next = first.disk.processDied();
      sink.ship = shipped;
      const second = await startShipping({ sink, disk: next, holder: 'h2' });
      await pass(second.clock, 500);
      expect(
        second.booked().filter((row) => !row.startsWith(`${inFlight}/`)),
        `crash at act ${crash}`,
      ).toEqual(expected.toSorted());
    }
  });

  test('a power cut that took what the books have already takes nothing from the books and adds nothing', async () => {
    const first = await startShipping();
    for (const id of names(10)) void first.journal.began(began(id));
    await pass(first.clock, 100);
    const disk = first.disk.copy();
    for (const id of names(10)) void first.journal.settled(settled(began(id)));
    await pass(first.clock, 500);
    expect(first.booked()).toEqual(completed(names(10)));
    const second = await startShipping({ sink: first.sink, disk: disk.powerCut(() => 0.9), holder: 'h2' });
    await pass(second.clock, 500);
    expect(second.booked()).toEqual(completed(names(10)));
    expect(second.sink.closed).toEqual(['h1']);
    expect(second.told).toEqual([]);
  });

  test('more than a batch of calls that died is booked whole, also when the books stop in the middle and another start goes on', async () => {
    const first = await startShipping();
    for (const id of names(1200)) void first.journal.began(began(id, { step: 1, promptTokens: 3 }));
    first.journal.spoke('r7', 1, 8);
    const second = await startShipping({ ...first, disk: first.disk.processDied(), holder: 'h2' });
    let batches = 0;
    second.sink.fails = ({ rows }) => (rows.length > 0 && ++batches > 1 ? away() : undefined);
    await pass(second.clock, 500);
    expect(second.sink.rows.size).toBe(500);
    second.sink.fails = () => undefined;
    const third = await startShipping({ ...second, disk: second.disk.processDied(), holder: 'h3' });
    await pass(third.clock, 500);
    expect(third.sink.rows.size).toBe(1200);
    expect(third.sink.rows.get('r7 1')).toMatchObject({
      end: 'gateway-died',
      status: 500,
      provenance: 'partial',
      inputTokens: 3,
      outputTokens: 8,
      planTokens: 19,
      costUsd: 27e-6,
      teamIds: [3],
      balance: 'inference',
    });
  });

  test('folders and files that are no journals are let be', async () => {
    const disk = testDisk();
    disk.put('journal/lost+found/x', Buffer.from('x'));
    disk.put('journal/readme.txt', Buffer.from('mine'));
    disk.put('journal/old/notes', Buffer.from('mine'));
    const { clock, told } = await startShipping({ disk });
    await pass(clock, 1000);
    expect(told).toEqual([]);
    expect(disk.paths).toEqual(expect.arrayContaining(['journal/lost+found/x', 'journal/old/notes', 'journal/readme.txt']));
  });
});

describe('adoption', () => {
  test("a dead worker's calls are booked, what it settled is told by account, once, and its journal goes", async () => {
    const { disk, clock, shipper, booked, journal: worker } = await startShipping({ writer: 'w1', ofWorkers: true });
    for (const id of names(100)) void worker.began(began(id));
    for (const id of names(99)) {
      void worker.settled(settled(began(id)));
      await pass(clock, 25);
    }
    await pass(clock, 500);
    const [before] = shipper.takeSettled();
    expect(before).toMatchObject({ writer: 'w1', isAll: true });
    expect(before!.settled.map(({ amount }) => amount)).toEqual([99 * 20, expect.closeTo(99 * 0.001), 99 * 20, expect.closeTo(99 * 0.001)]);
    expect(shipper.takeSettled()).toEqual([{ writer: 'w1', settled: [], isAll: true }]);
    let told: unknown;
    void shipper.adoptWriter('w1').then((booked) => (told = booked));
    await pass(clock, 500);
    expect(booked()).toEqual([...completed(names(99)), 'r99/0 gateway-died 0'].toSorted());
    expect(told).toEqual(
      (['user:12', 'team:3'] as const).flatMap((owner) => [
        { account: { owner, kind: 'inference', month: '2026-11' }, amount: 10 },
        { account: { owner, kind: 'usd', month: '2026-11' }, amount: expect.closeTo(10e-6) },
      ]),
    );
    expect(disk.paths.filter((path) => path.includes('/w1.'))).toEqual([]);
  });

  test('another machine’s journals come in under its name, its leases are freed, its files stay, and a second time changes nothing', async () => {
    const theirs = await startShipping({ holder: 'theirs' });
    theirs.sink.fails = away;
    for (const id of names(30)) void theirs.journal.began(began(id));
    for (const id of names(20)) void theirs.journal.settled(settled(began(id)));
    const disk = theirs.disk.processDied();
    const sink = testBooks();
    let held = 0;
    const hold = () => (held++, () => void held--);
    const parts = { sink, disk, folder: 'journal', refused: 'mine/refused.jsonl', log: () => {} };
    const paths = disk.paths;
    expect(await adoptJournals(parts, hold)).toEqual([{ holder: 'theirs', rows: 30 }]);
    const batches = sink.shipments.length;
    expect(await adoptJournals(parts, hold)).toEqual([{ holder: 'theirs', rows: 0 }]);
    expect([sink.rows.size, sink.shipments.length, sink.closed, disk.paths, held]).toEqual([30, batches, ['theirs', 'theirs'], paths, 0]);
    expect(sink.shipments.every(({ holder, journal }) => holder === 'theirs' && journal === 'theirs/main')).toBe(true);
  });

  test('a holder that left no journal, for its workers had closed theirs, is closed as well', async () => {
    const { disk, sink, journal } = await startShipping({ holder: 'theirs' });
    await journal.close();
    expect(disk.paths).toEqual([]);
    const parts = { sink, disk, folder: 'journal', refused: 'r', log: () => {} };
    expect(await adoptJournals(parts, () => () => {})).toEqual([{ holder: 'theirs', rows: 0 }]);
    expect(sink.closed).toEqual(['theirs']);
  });

  test('is refused while the server of that folder runs, and where there is no journal', async () => {
    const { disk, sink } = await startShipping();
    const parts = { sink, disk, folder: 'journal', refused: 'r', log: () => {} };
    const taken = () => {
      throw new Fault('conflict', 'The data folder is in use.');
    };
    await expect(adoptJournals(parts, taken)).rejects.toMatchObject({ code: 'conflict' });
    expect(sink.closed).toEqual([]);
    await expect(adoptJournals({ ...parts, folder: 'elsewhere' }, () => () => {})).rejects.toMatchObject({ code: 'not-found' });
  });
});
