import { Fault } from '#model/fault';
import type { LeaseSource } from '#model/lease';
import type { Clock } from '#kit/clock';
import type { UsageRow } from '#model/usage-row';
import type { Began } from '../../src/gateway/ledger/journal-record.ts';
import type { CallJournal } from '../../src/gateway/ledger/journal.ts';

/** Random numbers that come again for the same seed (mulberry32). */
export function chanceOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Time that passes only when everything else has come to rest. */
export class World {
  readonly clock: Clock;
  #passed = 0;
  #turn = 0;
  readonly #due: { readonly at: number; readonly turn: number; act: (() => void) | undefined }[] = [];

  constructor(start: number) {
    const after = (milliseconds: number, act: () => void) => {
      const one: { at: number; turn: number; act: (() => void) | undefined } = { at: this.#passed + Math.max(0, milliseconds), turn: this.#turn++, act };
      let place = this.#due.length;
      while (place > 0 && this.#due[place - 1]!.at > one.at) place--;
      this.#due.splice(place, 0, one);
      return () => void (one.act = undefined);
    };
    this.clock = {
      now: () => start + this.#passed,
      monotonic: () => this.#passed,
      after,
      sleep: (milliseconds, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason);
          const cancel = after(milliseconds, resolve);
          signal?.addEventListener('abort', () => (cancel(), reject(signal.reason)), { once: true });
        }),
    };
  }

  /** Lets so many milliseconds pass. */
  async pass(milliseconds: number): Promise<void> {
    const until = this.#passed + milliseconds;
    for (;;) {
      await rest();
      const next = this.#due[0];
      if (!next || next.at > until) break;
      this.#due.shift();
      this.#passed = Math.max(this.#passed, next.at);
      next.act?.();
    }
    this.#passed = until;
  }
}

/** Until promises that need no time have come to rest: a macrotask costs more than all of these. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 24; turn++) await Promise.resolve();
}

/** What remains of a process when it dies: what it had written. */
export class VirtualDisk {
  readonly began = new Map<string, Began>();
  readonly spoken = new Map<string, number>();
  readonly rows: UsageRow[] = [];
  shipped = 0;
  full = false;
}

/** Thrown out of whatever a process was doing when it died. */
export class Died extends Error {}

/** @param survives asked before and after each write; false: the process has died there */
export type MakeJournal = (disk: VirtualDisk, survives: () => boolean) => CallJournal;

export const keyOf = ({ requestId, step }: { readonly requestId: string; readonly step: number }) => `${requestId} ${step}`;

/** The journal as a process sees it: a write is whole or not there. */
export const virtualJournal: MakeJournal = (disk, survives) => {
  const write = (act: () => void) => {
    if (!survives()) throw new Died();
    act();
    if (!survives()) throw new Died();
  };
  return {
    began: (began) => write(() => disk.began.set(keyOf(began), began)),
    spoke: (requestId, step, tokens) => write(() => disk.spoken.set(keyOf({ requestId, step }), tokens)),
    settled: (row) => write(() => disk.rows.push(row)),
    get trouble() {
      return disk.full ? new Fault('overloaded', 'The disk is full.', { retryAfter: 5 }) : undefined;
    },
  };
};

/** The rows of calls that had begun and were not settled when the process died. */
export function diedRows(disk: VirtualDisk): UsageRow[] {
  const settled = new Set(disk.rows.map(keyOf));
  return [...disk.began.values()]
    .filter((began) => !settled.has(keyOf(began)))
    .map(({ promptTokens, rate, price, ...began }) => {
      const output = disk.spoken.get(keyOf(began)) ?? 0;
      return {
        ...began,
        servedModel: '',
        provider: '',
        region: '',
        attempts: [],
        status: 500,
        end: 'gateway-died',
        inputTokens: promptTokens,
        outputTokens: output,
        cachedTokens: 0,
        thoughtTokens: 0,
        provenance: 'partial',
        planTokens: Math.ceil(promptTokens * rate.input + output * rate.output),
        costUsd: price ? (promptTokens * price.input + output * price.output) / 1e6 : null,
        queueMs: 0,
        firstTokenMs: null,
        totalMs: 0,
      };
    });
}

interface Network {
  readonly clock: Clock;
  readonly chance: () => number;
  /** Does no message arrive now? */
  readonly away: () => boolean;
  /** Asked on the way there and on the way back. */
  readonly loses: () => boolean;
}

/** A way to the source on which messages and answers take their time, and may get lost. */
export function network(source: LeaseSource, { clock, chance, away, loses }: Network): LeaseSource {
  const over = async <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
    await clock.sleep(chance() * 4);
    if (away() || loses()) throw new Fault('overloaded', 'The database is away.', { retryAfter: 1 });
    const answer = await act();
    await clock.sleep(chance() * 4);
    if (loses()) throw new Fault('overloaded', 'The connection to the database was lost.', { retryAfter: 1 });
    return answer;
  };
  return {
    lease: (asks) => over(() => source.lease(asks)),
    giveBack: (returns) => over(() => source.giveBack(returns)),
    onRecall: (listen) => source.onRecall((account) => void clock.after(chance() * 20, () => listen(account))),
  };
}
