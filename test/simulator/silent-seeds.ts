import { expect } from 'vitest';
import { fallSilent } from './silence.ts';

const one = process.env['SEED'];

/** Lives this many silent lives; `SILENT_SEEDS` asks for another number, and `SEED` lives one again, with its story. */
export async function runSilentSeeds(many: number): Promise<void> {
  if (one !== undefined) console.log((await fallSilent(Number(one))).story);
  const seeds = one === undefined ? Array.from({ length: Number(process.env['SILENT_SEEDS'] ?? many) }, (_, at) => at + 1) : [Number(one)];
  for (const seed of seeds)
    expect({ replay: `SEED=${seed} npm test -- test/simulator/silence`, problems: (await fallSilent(seed)).problems }).toMatchObject({ problems: [] });
}
