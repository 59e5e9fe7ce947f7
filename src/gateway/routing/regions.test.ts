import { expect, test } from 'vitest';
import { statesTogether, type RegionState } from './regions.ts';

const state = (given: Partial<RegionState>): RegionState => ({
  provider: 'p',
  region: 'us-east1',
  model: 'm',
  state: 'ok',
  until: null,
  latencyMs: null,
  successRate: null,
  ...given,
});

test('several processes show a region at its worst, for the longest time, with the averages of those that know it', () => {
  const early = '2026-11-21T12:00:00.000Z';
  const late = '2026-11-21T12:00:09.000Z';
  const together = statesTogether([
    [state({ state: 'cooling', until: early, latencyMs: 100, successRate: 0.5 }), state({ region: 'us-west1' })],
    [state({ latencyMs: 201, successRate: 1 }), state({ region: 'us-west1', state: 'absent', until: late })],
    [state({ state: 'cooling', until: late }), state({ region: 'us-west1', state: 'cooling', until: late })],
    [],
  ]);
  expect(together).toEqual([
    state({ state: 'cooling', until: late, latencyMs: 151, successRate: 0.75 }),
    state({ region: 'us-west1', state: 'absent', until: late }),
  ]);
});
