/** CPU time of a journal record for the thread that writes it, beside a bare write of as many bytes. On the disk of the temporary folder. */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../src/kit/async/clock.ts';
import { systemDisk } from '../src/ledger/journal/disk.ts';
import { openJournal } from '../src/ledger/journal/journal.ts';
import { began, settled } from '../test/support/fakes/journals.ts';
import { atMost, type Question, type Row } from './question.ts';

const callsInTurn = 512;
/** Records that the journal writes at once. */
const recordsInTurn = 16;
const turns = 100;
/** About the size of a settled record. */
const rowBytes = 620;

export const journal: Question = {
  name: 'journal',
  async ask(rig) {
    const folder = rig.place();
    mkdirSync(folder, { recursive: true });
    const bare = openSync(join(folder, 'bare'), 'w');
    const bytes = Buffer.alloc(rowBytes, 'x');
    let endTurn = () => {};
    const written = await openJournal({
      disk: systemDisk,
      clock: systemClock,
      folder: join(folder, 'holder'),
      writer: 'main',
      minFreeBytes: () => 0,
      log: (problem, cause) => console.error(problem, cause),
      mended: (what) => console.error(what),
      atTurnEnd: (run) => (endTurn = run),
    });
    /** Ends the turn of the event loop after so many records, as under load. */
    const inTurn = (n: number, _: unknown) => {
      if (n % recordsInTurn === recordsInTurn - 1) endTurn();
    };
    const microseconds = { 'a bare write': 0, began: 0, spoke: 0, settled: 0 };
    const timed = <Item>(name: keyof typeof microseconds, items: readonly Item[], act: (item: Item, at: number) => void) => {
      const start = process.threadCpuUsage();
      items.forEach(act);
      const { user, system } = process.threadCpuUsage(start);
      microseconds[name] += (user + system) / items.length / turns; // coarse: only the sum of many turns says something
    };
    for (let turn = 0; turn < turns; turn++) {
      const calls = Array.from({ length: callsInTurn }, (_, n) => began(`req_${String(turn).padStart(11, '0')}${String(n).padStart(11, '0')}`));
      const rows = calls.map((call) => settled(call));
      timed('a bare write', rows, (_, n) => writeSync(bare, bytes, 0, rowBytes, (turn * callsInTurn + n) * rowBytes));
      timed('began', calls, (call, n) => inTurn(n, written.began(call)));
      timed('spoke', calls, ({ requestId }, n) => inTurn(n, written.spoke(requestId, 0, 100)));
      timed('settled', rows, (row, n) => inTurn(n, written.settled(row)));
      await setTimeout(20); // files are made ready in the background
    }
    await written.close();
    closeSync(bare);
    return Object.entries(microseconds).map(([who, value]): Row => ({
      what: 'a record of the journal, CPU µs',
      who,
      value,
      ...(who !== 'a bare write' && { bars: [atMost('≤ 4 µs above a bare write', value - microseconds['a bare write'], 4)] }),
    }));
  },
};
