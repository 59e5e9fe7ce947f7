import { expect, test } from 'vitest';
import { modelNames, providerOf } from '../support/fakes/vendors/index.ts';
import { drawnCall } from './drawn-calls.ts';
import { grouped, judged } from './judged-calls.ts';

const vendorOf = (model: string) => providerOf(model).vendor.name;
const vendors = [...new Set(modelNames.map(vendorOf))];
const each = Number(process.env['CALLS'] ?? 10_000);

/** The first seeds whose calls are for a model of this vendor. */
function* seedsFor(vendor: string, count: number): Generator<number> {
  for (let seed = 1000, found = 0; found < count; seed++)
    if (vendorOf(drawnCall(seed).model) === vendor) {
      found++;
      yield seed;
    }
}

test.each([
  ...vendors.map((vendor) => [`at ${vendor}`, true, seedsFor(vendor, each)] as const),
  ['at addresses that nobody knows', false, Array.from({ length: 3000 }, (_, at) => at + 1000)] as const,
])('no call is refused by a vendor whose own clients would not be refused, %s', async (_, known, seeds) => {
  const { wrong } = await judged(seeds, known);
  if (wrong.length > 0) expect.fail(`SEED=n npm test -- test/vendors/generated repeats one:\n${grouped(wrong)}`);
});
