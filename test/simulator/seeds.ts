import { expect } from 'vitest';
import { run } from './run.ts';

const one = process.env['SEED'];

/** Runs this part of this many seeds; `SEEDS` asks for another number. A seed that fails is printed: `SEED` lives it again, with its story. @param part from 0 */
export async function runSeeds(part: number, parts: number, seeds: number): Promise<void> {
  if (one !== undefined) {
    const { story, problems } = await run(Number(one));
    console.log(story);
    expect({ seed: Number(one), problems }).toEqual({ seed: Number(one), problems: [] });
    return;
  }
  const many = Number(process.env['SEEDS'] ?? seeds);
  for (let seed = 1 + part; seed <= many; seed += parts) {
    const { problems } = await run(seed);
    if (problems.length > 0) expect({ replay: `SEED=${seed} npm test -- test/simulator/seeds-odd`, problems }).toEqual({ problems: [] });
  }
}
