import { join } from 'node:path';
import { Fault } from '#core/fault';
import type { UsageSink } from './usage-sink.ts';
import { JournalShipment } from './journal-shipment.ts';
import type { Disk } from '../journal/disk.ts';
import { segmentsOf } from '../journal/segments.ts';

export interface AdoptDeps {
  readonly sink: UsageSink;
  readonly disk: Disk;
  /** Where the holders' folders lie: `data/journal`. */
  readonly folder: string;
  /** The file for rows that no database takes: `data/journal/refused.jsonl`, of this machine. */
  readonly refused: string;
  readonly log: (problem: string, cause: unknown) => void;
}

export interface Adopted {
  readonly holder: string;
  /** Rows that came into the books by this. */
  readonly rows: number;
}

/**
 * Brings the journals of another machine, which is gone for good, into the books, and frees what it had leased. Its files stay as they are; a second time changes nothing.
 *
 * @param hold makes sure that nobody writes there while we read, and answers what lets go of it. @throws Fault `conflict` while its server runs
 * @throws Fault `not-found` where there is no journal; what the books throw, after which it may be tried again
 */
export async function adoptJournals(parts: AdoptDeps, hold: () => () => void): Promise<readonly Adopted[]> {
  const release = hold();
  try {
    const holders = await holdersIn(parts.disk, parts.folder);
    const adopted: Adopted[] = [];
    // One whose folder is empty may still hold leases: its workers had closed their journals, and all that was in them is in the books.
    for (const holder of holders) adopted.push({ holder, rows: await shipHolder({ ...parts, removing: false }, holder) });
    if (adopted.length === 0) throw new Fault('not-found', `There is no journal in ${parts.folder}.`);
    return adopted;
  } finally {
    release();
  }
}

/** The holders with a folder there. */
export async function holdersIn(disk: Disk, folder: string): Promise<readonly string[]> {
  return (await disk.list(folder)).filter((name) => /^[0-9A-Za-z_-]{1,64}$/.test(name));
}

/**
 * Ships all that a holder who is gone has left, books those who died with it, closes it, and removes its folder where asked to. May be broken off anywhere and done again.
 *
 * @returns rows that came into the books by this
 */
export async function shipHolder(parts: AdoptDeps & { readonly removing: boolean }, holder: string): Promise<number> {
  const { sink, disk, removing } = parts;
  const folder = join(parts.folder, holder);
  const writers = [...segmentsOf(await disk.list(folder)).keys()];
  const consignments = writers.map((writer) => new JournalShipment({ ...parts, folder, holder, writer, counting: false }));
  for (const shipment of consignments) while (!shipment.done) await shipment.ship(true);
  const shipped = consignments.reduce((sum, { rows }) => sum + rows, 0);
  await sink.close(holder, shipped);
  if (removing) {
    for (const shipment of consignments) await shipment.remove();
    await disk.remove(folder);
  }
  return shipped;
}
