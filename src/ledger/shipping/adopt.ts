import { join } from 'node:path';
import { Fault } from '#core/fault';
import { JournalShipment, type JournalShipmentDeps } from './journal-shipment.ts';
import type { Disk } from '../journal/disk.ts';
import { segmentsOf } from '../journal/segments.ts';

export interface AdoptDeps extends Pick<JournalShipmentDeps, 'sink' | 'disk' | 'log'> {
  /** The folder with a folder of each holder: `data/journal`. */
  readonly folder: string;
  /** The file for rows that the database refuses: `data/journal/refused.jsonl` of this machine. */
  readonly refused: string;
}

export interface Adopted {
  readonly holder: string;
  readonly rows: number;
}

/**
 * Books the journals of another machine, which is gone for good, and frees what it had leased. Its files stay as they are; a second time changes nothing.
 * @param hold keeps other processes from writing there meanwhile, and returns what releases it. @throws Fault `conflict` while its server runs
 * @throws Fault `not-found` where there is no journal; what the database throws, after which it may be tried again
 */
export async function adoptJournals(deps: AdoptDeps, hold: () => () => void): Promise<readonly Adopted[]> {
  const release = hold();
  try {
    const holders = await holdersIn(deps.disk, deps.folder);
    const adopted: Adopted[] = [];
    // One whose folder is empty may still hold leases: its workers had closed their journals, and all that was in them is in the books.
    for (const holder of holders) adopted.push({ holder, rows: await shipHolder({ ...deps, removing: false }, holder) });
    if (adopted.length === 0) throw new Fault('not-found', `There is no journal in ${deps.folder}.`);
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
 * Ships all that a holder which is gone has left, books the calls that died with it, closes it, and removes its folder where asked to. Safe to break off anywhere and to repeat.
 *
 * @returns rows that were booked
 */
export async function shipHolder(deps: AdoptDeps & { readonly removing: boolean }, holder: string): Promise<number> {
  const { sink, disk, removing } = deps;
  const folder = join(deps.folder, holder);
  const writers = [...segmentsOf(await disk.list(folder)).keys()];
  const shipments = writers.map((writer) => new JournalShipment({ ...deps, folder, holder, writer, counting: false }));
  for (const shipment of shipments) while (!shipment.done) await shipment.ship(true);
  const shipped = shipments.reduce((sum, { rows }) => sum + rows, 0);
  await sink.close(holder, shipped);
  if (removing) {
    for (const shipment of shipments) await shipment.remove();
    await disk.remove(folder);
  }
  return shipped;
}
