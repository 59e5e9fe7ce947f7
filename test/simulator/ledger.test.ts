import { expect, test } from 'vitest';
import { run } from './run.ts';

const one = process.env['SEED'];
const seeds = Number(process.env['SEEDS'] ?? 10_000);

test('whatever dies and whenever, the books are right', { timeout: 3_600_000 }, async () => {
  for (let seed = one ? Number(one) : 1; seed <= (one ? Number(one) : seeds); seed++)
    expect({ seed, problems: await run(seed) }).toEqual({ seed, problems: [] });
});
