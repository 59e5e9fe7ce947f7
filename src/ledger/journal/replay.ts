import { costOf, planTokensOf } from '#core/price';
import { OpenMap } from '#kit/async/open-map';
import type { SettledRow, UsageRow } from '#core/usage-row';
import type { Bookings } from './bookings.ts';
import { callOf, settledJson, type Began } from './record.ts';
import { segmentOf } from './segments.ts';
import type { Entry } from './tail.ts';

/** More than are settled between two syncs. At least this number of calls is remembered, and at most twice as many. */
const rememberedCalls = 20_000;

/** What the records of a journal come to, one after the other: who is running, and, where somebody wants to know, what was settled. */
export class Replay {
  readonly #running = new OpenMap<{ readonly json: string; readonly segment: number; spoken: number }>();
  /** Calls that were settled lately: what a failed sync may have lost is written again, and a call that is over does not run again for that. */
  #over = new Set<string>();
  #overBefore: ReadonlySet<string> = new Set();
  readonly #bookings: Bookings | undefined;

  constructor(bookings?: Bookings) {
    this.#bookings = bookings;
  }

  /** Takes note of a record. One about a call that is not running changes nothing. */
  note({ kind, json, to }: Entry): void {
    switch (kind) {
      case 'began': {
        // A call that runs for long is written down again. It takes its place in the order from there, as it does for who reads only the files that are left.
        const name = callOf(json);
        if (this.#over.has(name) || this.#overBefore.has(name)) break;
        const spoken = this.#running.get(name)?.spoken ?? 0;
        this.#running.set(name, { json: json.toString(), segment: segmentOf(to - 1), spoken });
        break;
      }
      case 'spoke': {
        const call = this.#running.get(callOf(json));
        if (call) call.spoken = (JSON.parse(json.toString()) as { outputTokens: number }).outputTokens;
        break;
      }
      case 'refused': // it was told that it may not begin, and its `began` may have been written all the same
        this.#running.delete(callOf(json));
        break;
      case 'settled': {
        const name = callOf(json);
        if (this.#running.delete(name)) this.#bookings?.book(JSON.parse(json.toString()) as SettledRow, to);
        this.#over.add(name);
        if (this.#over.size === rememberedCalls) {
          this.#overBefore = this.#over;
          this.#over = new Set();
        }
        break;
      }
      default:
        kind satisfies never;
    }
  }

  /** The oldest file that knows of a call which is running. */
  get oldest(): number {
    let oldest = Infinity;
    for (const { segment } of this.#running.values()) oldest = Math.min(oldest, segment);
    return oldest;
  }

  /** The writer is gone: whoever was running died with it. @param placeOf behind the row of the nth. @returns their rows, in the order in which they began */
  deaths(placeOf: (n: number) => number): readonly Entry[] {
    const rows = this.#running.values().map(({ json, spoken }) => diedRow(JSON.parse(json) as Began, spoken));
    this.#running.clear();
    return rows.map((row, at) => {
      const to = placeOf(at);
      this.#bookings?.book(row, to);
      return { kind: 'settled', json: Buffer.from(settledJson(row)), to };
    });
  }
}

/** Nobody saw the end: the prompt as it was counted at admission, and what was last known to be said. */
function diedRow({ rate, price, promptTokens, ...call }: Began, outputTokens: number): UsageRow {
  return {
    ...call,
    servedModel: '',
    provider: '',
    region: '',
    attempts: [],
    status: 500,
    end: 'gateway-died',
    inputTokens: promptTokens,
    outputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    thoughtTokens: 0,
    provenance: 'partial',
    planTokens: planTokensOf(rate, promptTokens, outputTokens),
    costUsd: price ? costOf(price, { input: promptTokens, output: outputTokens }) : null,
    queueMs: 0,
    firstTokenMs: null,
    totalMs: 0,
  };
}
