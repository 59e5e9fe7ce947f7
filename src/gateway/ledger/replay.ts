import { accountName, type Account, type Owner } from '#model/account';
import { monthOf } from '#model/plan';
import { costOf } from '#model/price';
import type { UsageRow } from '#model/usage-row';
import { callOf, settledJson, type Began } from './journal-record.ts';
import { segmentOf } from './journal-segments.ts';
import type { Entry } from './tail.ts';

/** So much was settled of an account. */
export interface Booked {
  readonly account: Account;
  readonly amount: number;
}

/** What the records of a journal come to, one after the other: who is running, and, where asked for, what was settled. */
export class Replay {
  readonly #running = new Map<string, { readonly json: string; readonly segment: number; spoken: number }>();
  readonly #booked: Map<string, { readonly account: Account; amount: number }> | undefined;

  constructor(counting: boolean) {
    this.#booked = counting ? new Map() : undefined;
  }

  /** Takes note of a record. One about a call that is not running changes nothing. */
  note({ kind, json, to }: Entry): void {
    switch (kind) {
      case 'began': {
        // A call that runs for long is written down again. It takes its place in the order from there, as it does for who reads only the files that are left.
        const name = callOf(json);
        const spoken = this.#running.get(name)?.spoken ?? 0;
        this.#running.delete(name);
        this.#running.set(name, { json: json.toString(), segment: segmentOf(to - 1), spoken });
        break;
      }
      case 'spoke': {
        const call = this.#running.get(callOf(json));
        if (call) call.spoken = (JSON.parse(json.toString()) as { outputTokens: number }).outputTokens;
        break;
      }
      case 'settled':
        if (this.#running.delete(callOf(json)) && this.#booked) this.#book(JSON.parse(json.toString()) as UsageRow);
        break;
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

  /** The writer is gone: whoever was running died with it. @returns their rows as JSON, in the order in which they began */
  deaths(): readonly string[] {
    const rows = [...this.#running.values()].map(({ json, spoken }) => diedRow(JSON.parse(json) as Began, spoken));
    this.#running.clear();
    if (this.#booked) for (const row of rows) this.#book(row);
    return rows.map(settledJson);
  }

  /** All that was settled since the journal began. */
  get booked(): readonly Booked[] {
    return [...(this.#booked?.values() ?? [])];
  }

  #book({ userId, teamIds, balance, planTokens, costUsd, at }: UsageRow): void {
    const month = monthOf(at);
    const owners: Owner[] = [`user:${userId}`, ...teamIds.map((id): Owner => `team:${id}`)];
    for (const owner of owners) {
      this.#add({ owner, kind: balance, month }, planTokens);
      if (costUsd) this.#add({ owner, kind: 'usd', month }, costUsd);
    }
  }

  #add(account: Account, amount: number): void {
    const name = accountName(account);
    const sum = this.#booked?.get(name);
    if (sum) sum.amount += amount;
    else this.#booked?.set(name, { account, amount });
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
    thoughtTokens: 0,
    provenance: 'partial',
    planTokens: Math.ceil(promptTokens * rate.input + outputTokens * rate.output),
    costUsd: price ? costOf(price, { input: promptTokens, output: outputTokens }) : null,
    queueMs: 0,
    firstTokenMs: null,
    totalMs: 0,
  };
}
