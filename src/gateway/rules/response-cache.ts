import type { Clock } from '#kit/async/clock';
import type { Events } from '#core/event';

/** The response cache, in the memory of this process; other processes and machines have their own. The least recently used answers are evicted first. */
export class ResponseCache {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #mostBytes: number;
  /** In order of last use. */
  readonly #answers = new Map<string, CachedAnswer>();
  #bytes = 0;

  constructor(clock: Pick<Clock, 'monotonic'>, mostBytes = defaultBytes) {
    this.#clock = clock;
    this.#mostBytes = mostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The cached answer, unless it is too old for this request or for the one that stored it. */
  find(name: string, ttlSeconds: number): readonly Events[] | undefined {
    const entry = this.#answers.get(name);
    if (!entry) return undefined;
    const age = this.#clock.monotonic() - entry.at;
    if (age >= entry.ttlSeconds * 1000) this.#drop(name, entry);
    if (age >= Math.min(ttlSeconds, entry.ttlSeconds) * 1000) return undefined;
    this.#answers.delete(name);
    this.#answers.set(name, entry);
    return JSON.parse(entry.json) as readonly Events[];
  }

  keep(name: string, events: readonly Events[], ttlSeconds: number): void {
    const json = JSON.stringify(events);
    const entry = { json, at: this.#clock.monotonic(), ttlSeconds };
    if (sizeOf(entry) > largestAnswer) return;
    const old = this.#answers.get(name);
    if (old) this.#drop(name, old);
    this.#answers.set(name, entry);
    this.#bytes += sizeOf(entry);
    for (const [oldest, one] of this.#answers) {
      if (this.#bytes <= this.#mostBytes) break;
      this.#drop(oldest, one);
    }
  }

  #drop(name: string, entry: CachedAnswer): void {
    this.#answers.delete(name);
    this.#bytes -= sizeOf(entry);
  }
}

interface CachedAnswer {
  /** As text, so that the size is known. */
  readonly json: string;
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly ttlSeconds: number;
}

const defaultBytes = 67_108_864;
/** Bytes: a longer answer is not cached. */
export const largestAnswer = 2_097_152;

/** At most two bytes per character, and the overhead of an entry. */
const sizeOf = ({ json }: CachedAnswer) => json.length * 2 + 300;
