import { expect, test } from 'vitest';
import { fallSilent } from './silence.ts';

const one = process.env['SEED'];
const many = Number(process.env['SILENT_SEEDS'] ?? 100);

test('machines that fall silent, for a while or for good, take no permit with them and use none that was ended [X-01]', { timeout: 600_000 }, async () => {
  if (one !== undefined) console.log((await fallSilent(Number(one))).story);
  const seeds = one === undefined ? Array.from({ length: many }, (_, at) => at + 1) : [Number(one)];
  for (const seed of seeds)
    expect({ replay: `SEED=${seed} npm test -- test/simulator/silence`, problems: (await fallSilent(seed)).problems }).toMatchObject({ problems: [] });
});

test('such a life is the same each time [X-01]', { timeout: 120_000 }, async () => {
  expect((await fallSilent(1)).trace).toBe((await fallSilent(1)).trace);
});
