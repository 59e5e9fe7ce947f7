import { expect } from 'vitest';
import { run } from './run.ts';

const one = process.env['SEED'];

/** So many seeds in all; `SEEDS` asks for another number, and `SEED` replays one, with its story. */
const many = Number(process.env['SEEDS'] ?? 10_000);

/** Runs this part of the seeds. A seed that fails is printed, and replays with `SEED=… npm test -- test/simulator`. @param part from 0 */
export async function runSeeds(part: number, parts: number): Promise<void> {
  if (one !== undefined) {
    const { story, problems } = await run(Number(one));
    console.log(story);
    expect({ seed: Number(one), problems }).toEqual({ seed: Number(one), problems: [] });
    return;
  }
  for (let seed = 1 + part; seed <= many; seed += parts) {
    const { problems } = await run(seed);
    if (problems.length > 0) expect({ replay: `SEED=${seed} npm test -- test/simulator/seeds-odd`, problems }).toEqual({ problems: [] });
  }
}
