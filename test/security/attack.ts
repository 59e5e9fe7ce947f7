import type { Behaviour } from '../support/fakes/upstream/index.ts';

/** A request that somebody sends to keep the server busy, and what the provider says to it. */
export interface Attack {
  readonly name: string;
  readonly path: string;
  /** POST unless it is said. */
  readonly method?: 'POST' | 'GET' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  /** A text, bytes or a stream go as they are, all else as JSON. It is made when it is sent, so that nothing of it is kept. */
  readonly body?: () => object | string;
  readonly answer?: () => Behaviour;
  /** What it must be answered by; any but 500 where nothing is said. */
  readonly status?: number;
}
