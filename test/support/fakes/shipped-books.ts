import { isDeepStrictEqual } from 'node:util';
import { Fault } from '#core/fault';
import type { UsageRow } from '#core/usage-row';
import type { Shipment, UsageSink } from '../../../src/core/usage-sink.ts';
import { shippedRows } from '../usage-rows.ts';

/** The database as the journals see it, in memory. */
export interface TestBooks extends UsageSink {
  readonly rows: ReadonlyMap<string, UsageRow>;
  readonly positions: Map<string, number>;
  readonly closed: readonly string[];
  readonly shipments: readonly Shipment[];
  /** What it answers instead, if anything; asked before each shipment. `answer` is lost on the way back. */
  fails: (shipment: Shipment) => { readonly instead?: Error; readonly answer?: Error } | undefined;
  /** A row that it can never take. */
  refuses: (row: UsageRow) => boolean;
}

export function testBooks(): TestBooks {
  const rows = new Map<string, UsageRow>();
  const positions = new Map<string, number>();
  const closed: string[] = [];
  const shipments: Shipment[] = [];
  const books: TestBooks = {
    rows,
    positions,
    closed,
    shipments,
    fails: () => undefined,
    refuses: () => false,
    async ship(shipment) {
      await Promise.resolve();
      const failure = books.fails(shipment);
      if (failure?.instead) throw failure.instead;
      const stored = positions.get(shipment.journal) ?? 0;
      let leftOut: readonly number[] = [];
      if (stored < shipment.to) {
        if (stored !== shipment.from) throw new Fault('conflict', `The journal is in the books up to ${stored}, not ${shipment.from}.`);
        const given = shippedRows(shipment.rows);
        if (given.some(books.refuses)) throw new Fault('invalid', 'A row cannot be read.');
        for (const row of given) if (!rows.has(nameOf(row))) rows.set(nameOf(row), row);
        leftOut = given.flatMap((row, place) => (isSame(rows.get(nameOf(row))!, row) ? [] : [place]));
        positions.set(shipment.journal, shipment.to);
        shipments.push({ ...shipment, rows: Buffer.from(shipment.rows) });
      }
      if (failure?.answer) throw failure.answer;
      return leftOut;
    },
    async position(journal) {
      await Promise.resolve();
      const failure = books.fails({ holder: '', journal, from: 0, to: 0, rows: Buffer.alloc(0) });
      if (failure?.instead) throw failure.instead;
      return positions.get(journal) ?? 0;
    },
    async close(holder) {
      await Promise.resolve();
      closed.push(holder);
    },
  };
  return books;
}

const nameOf = ({ requestId, step }: UsageRow) => `${requestId} ${step}`;

/** That a call died is a guess of whoever has lost the end of the journal. */
export const isSame = (booked: UsageRow, given: UsageRow) => isDeepStrictEqual(booked, given) || (given.end === 'gateway-died' && given.at === booked.at);
