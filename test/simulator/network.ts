/* The ways between processes: to the database, and from a worker to its parent. What is sent takes its time, and may not arrive. */
import type { Account } from '#core/account';
import { Fault, faultOf } from '#core/fault';
import type { LeaseSource } from '#core/lease';
import type { Wire } from '#kit/ipc/channel';
import type { UsageSink } from '../../src/core/usage-sink.ts';
import { shippedRows } from '../support/usage-rows.ts';
import type { BooksModel } from './books-model.ts';
import { never, type Life, type World } from './world.ts';

/** What befalls messages to the database now. */
export interface Weather {
  /** Does none arrive? */
  isAway: boolean;
  /** Milliseconds each way at most. */
  slowness: number;
  /** The share of messages and of answers that get lost. */
  loss: number;
}

/** One process's way to the database. */
export interface Line {
  /** @returns the new holder's id */
  enter(): Promise<string>;
  source(holder: string): LeaseSource;
  seen(holder: string, streamSeconds: number): Promise<void>;
  readonly shipped: UsageSink;
}

export interface LineDeps {
  readonly books: BooksModel;
  readonly world: World;
  readonly weather: Weather;
  readonly chance: () => number;
  /** Told after each transaction. */
  readonly committed: () => void;
}

/** Does something in the database: what is asked and what is answered take their time. @throws Fault `overloaded` where either is lost */
export type Over = <Answer>(act: () => Answer | Promise<Answer>) => Promise<Answer>;

/** A message that has been sent arrives although its sender dies; an answer reaches the living alone, and one that is lost may have been to something that was done. */
export function wayTo(life: Life, { world, weather, chance, committed }: Omit<LineDeps, 'books'>): Over {
  const away = () => new Fault('overloaded', 'The database is away.', { retryAfter: 1 });
  const isLost = () => weather.loss > 0 && chance() < weather.loss;
  return async (act) => {
    if (!life.point()) return never;
    await world.clock.sleep(chance() * weather.slowness);
    const arrives = !weather.isAway && !isLost();
    let answer: Awaited<ReturnType<typeof act>> | undefined;
    let refusal: Fault | undefined;
    if (arrives)
      try {
        answer = await act();
        committed();
      } catch (error) {
        refusal = faultOf(error);
      }
    await life.clock.sleep(chance() * weather.slowness);
    if (!arrives || isLost()) throw away();
    if (refusal) throw refusal;
    return answer!;
  };
}

export function lineTo(life: Life, parts: LineDeps): Line {
  const { books, chance } = parts;
  const over = wayTo(life, parts);
  return {
    enter: () => over(() => books.enter()),
    seen: (holder, streamSeconds) => over(() => books.seen(holder, streamSeconds)),
    source(holder) {
      const source = books.source(holder);
      return {
        lease: (asks) => over(() => source.lease(asks)),
        giveBack: (returns) => over(() => source.giveBack(returns)),
        onRecall: (listen) => source.onRecall((account: Account) => void life.clock.after(chance() * 20, () => listen(account))),
      };
    },
    shipped: {
      ship: ({ rows, ...batch }) => over(() => books.ship({ ...batch, rows: shippedRows(rows) })),
      position: (journal) => over(() => books.position(journal)),
      close: (holder) => over(() => books.close(holder)),
    },
  };
}

/** The two ends of a wire between two processes. What was sent before one of them died arrives before the other hears of it. */
export function wireBetween(one: Life, other: Life, world: World, chance: () => number): readonly [Wire, Wire] {
  const end = (mine: Life, its: Life) => {
    const heard: ((message: unknown) => void)[] = [];
    const closed: (() => void)[] = [];
    let busyUntil = 0;
    /** In order, each a moment after the one before. */
    const later = (act: () => void) => {
      busyUntil = Math.max(busyUntil, world.passed + chance() * 2);
      mine.clock.after(busyUntil - world.passed, act);
    };
    its.onEnd(() => later(() => closed.forEach((listen) => listen())));
    const wire = { onMessage: (listen: (message: unknown) => void) => void heard.push(listen), onClose: (listen: () => void) => void closed.push(listen) };
    return { wire, hears: (message: object) => later(() => heard.forEach((listen) => listen(message))) };
  };
  const [here, there] = [end(one, other), end(other, one)];
  const send = (from: Life, hears: (message: object) => void) => (message: object) => {
    if (from.point()) hears(structuredClone(message));
  };
  return [
    { ...here.wire, send: send(one, there.hears) },
    { ...there.wire, send: send(other, here.hears) },
  ];
}
