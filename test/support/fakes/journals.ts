import type { Began } from '../../../src/ledger/journal/record.ts';
import type { UsageRow } from '#core/usage-row';
import type { TestClock } from './clock.ts';

/** A random number from 0 to 1, the same for the same seed. */
export function chanceOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Lets time pass in small steps, and all that comes of it happen. */
export async function pass(clock: TestClock, milliseconds: number): Promise<void> {
  for (let passed = 0; passed <= milliseconds; passed += 25) {
    await new Promise(setImmediate);
    clock.advance(passed === 0 ? 0 : 25);
  }
  await new Promise(setImmediate);
}

export function began(requestId: string, changes: Partial<Began> = {}): Began {
  return {
    requestId,
    step: 0,
    at: Date.UTC(2026, 10, 21, 14),
    userId: 12,
    teamIds: [3],
    keyId: 7,
    app: 'shop',
    face: 'chatcompat',
    model: 'gpt-4o',
    charges: ['inference user:12', 'usd user:12', 'inference team:3', 'usd team:3'],
    balance: 'inference',
    promptTokens: 10,
    rate: { input: 1, output: 2 },
    price: { input: 1, output: 3 },
    ...changes,
  };
}

export function settled({ rate: _, price: __, promptTokens, ...call }: Began, changes: Partial<UsageRow> = {}): UsageRow {
  return {
    ...call,
    servedModel: 'gpt-4o-2024-08-06',
    provider: 'openai',
    region: '',
    attempts: [{ provider: 'openai', model: 'gpt-4o', milliseconds: 12.5 }],
    status: 200,
    end: 'completed',
    inputTokens: promptTokens,
    outputTokens: 5,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    thoughtTokens: 0,
    provenance: 'provider',
    planTokens: 20,
    costUsd: 0.001,
    queueMs: 0.1,
    firstTokenMs: 3,
    totalMs: 9,
    ...changes,
  };
}

/** A row in short: who, how it ended, what was said. */
export const inShort = ({ requestId, step, end, outputTokens }: Pick<UsageRow, 'requestId' | 'step' | 'end' | 'outputTokens'>): string =>
  `${requestId}/${step} ${end} ${outputTokens}`;
