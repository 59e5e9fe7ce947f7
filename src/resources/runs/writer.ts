import type { Json } from '#core/json';
import { Fault } from '#core/fault';
import type { RunEvent } from '#core/run';
import type { Clock } from '#kit/async/clock';
import { patient } from '#store/patience';
import { mostBytes, type Counted, type RunRows, type StepRow, type TakenRun } from './rows.ts';

/** An event as it is stored: its number is that of its place. */
export type KeptEvent = RunEvent & { readonly timestamp: string; readonly place: string };

export interface WriterDeps {
  readonly rows: RunRows;
  readonly clock: Clock;
  readonly holder: string;
  /** Of the job. */
  readonly signal: AbortSignal;
  /** Told the bytes of each result that the run goes on with. */
  readonly kept: (bytes: number) => void;
  /** Called once, when nothing more can be written. */
  readonly broke: (error: unknown) => void;
}

/** Events wait so long for others that are written with them. */
const gatherMilliseconds = 100;
/** Characters of a text that grows in one event. */
const longestDelta = 16_384;

/** Thrown where a run cannot be worked on here any more: another process has it, or the database is away. It is taken up again. */
export class RunLost extends Error {
  constructor(cause?: unknown) {
    super('The run can no longer be written.', { cause });
    this.name = 'RunLost';
  }
}

/** Writes what happens in a run: what has gathered goes in one statement, one after the other. */
export class RunWriter {
  readonly counted: { -readonly [Key in keyof Counted]: Counted[Key] };
  readonly #run: TakenRun;
  readonly #deps: WriterDeps;
  #events: KeptEvent[] = [];
  #steps: StepRow[] = [];
  #writing: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #bytes: number;
  #seq: number;
  #since: number;
  /** Of what is written. */
  #used: number;
  #broken: Error | undefined;

  constructor(run: TakenRun, deps: WriterDeps) {
    const { numbered, steps, calls, inputTokens, outputTokens, planTokens, costUsd, workedMs } = run;
    this.counted = { numbered, steps, calls, inputTokens, outputTokens, planTokens, costUsd, workedMs };
    this.#run = run;
    this.#deps = deps;
    this.#bytes = run.bytes;
    this.#seq = run.seq;
    this.#used = usedOf(run);
    this.#since = deps.clock.monotonic();
  }

  /** Events that are not written yet. */
  get unwritten(): number {
    return this.#events.length;
  }

  tell(place: string, event: RunEvent): void {
    const timestamp = new Date(this.#deps.clock.now()).toISOString();
    const last = this.#events.at(-1);
    const grown = last?.place === place ? grownBy(last, event) : undefined;
    if (grown) this.#events[this.#events.length - 1] = grown;
    else this.#events.push({ ...event, timestamp, place });
    this.#cancelTimer ??= this.#deps.clock.after(gatherMilliseconds, () => void this.flush().catch(() => {}));
  }

  /** Writes a step, with everything that was told before. @param result of a step that is done */
  save(step: Omit<StepRow, 'sealed'>, result?: Json): Promise<void> {
    const sealed = result === undefined ? null : this.#deps.rows.sealed(this.#run.userId, result);
    if (sealed) this.#deps.kept(sealed.length);
    this.#steps.push({ ...step, sealed });
    return this.flush();
  }

  /** Stops the time at work. @returns what lets it go on */
  rest(): () => void {
    this.counted.workedMs += this.#deps.clock.monotonic() - this.#since;
    this.#since = Infinity;
    return () => void (this.#since = this.#deps.clock.monotonic());
  }

  /** Puts a step with the next one that is written. */
  add(step: Omit<StepRow, 'sealed'>, result: Json): void {
    this.#steps.push({ ...step, sealed: this.#deps.rows.sealed(this.#run.userId, result) });
  }

  /** Writes all that has gathered, and what was counted since. @throws RunLost; Fault `unprocessable` for a run that has grown too large */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing;
    if (this.#broken !== undefined) throw this.#broken;
    if (this.#events.length + this.#steps.length === 0 && usedOf(this.counted) === this.#used) return;
    this.#writing = this.#write().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { rows, clock, holder, signal } = this.#deps;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const [events, steps] = [this.#events, this.#steps];
    [this.#events, this.#steps] = [[], []];
    this.#used = usedOf(this.counted);
    const now = clock.monotonic();
    if (this.#since !== Infinity) {
      this.counted.workedMs += now - this.#since;
      this.#since = now;
    }
    const sealed = events.length > 0 ? rows.sealed(this.#run.userId, events as unknown as Json) : undefined;
    const bytes = steps.reduce((sum, step) => sum + (step.sealed?.length ?? 0), sealed?.length ?? 0);
    try {
      if (this.#bytes + bytes > mostBytes) throw new Fault('unprocessable', `The run has reached its limit of ${mostBytes} bytes.`);
      const written = {
        from: this.#seq,
        events: sealed && { count: events.length, sealed },
        steps: latest(steps),
        counted: { ...this.counted },
        bytes,
      };
      if (!(await patient(() => rows.write(this.#run.id, holder, written), { clock, signal }))) throw new RunLost();
      this.#bytes += bytes;
      this.#seq += events.length;
    } catch (error) {
      this.#broken = error instanceof Fault && error.code === 'unprocessable' ? error : error instanceof RunLost ? error : new RunLost(error);
      this.#deps.broke(this.#broken);
      throw this.#broken;
    }
  }
}

/** Tokens of all kinds: they grow only. */
const usedOf = ({ inputTokens, outputTokens, planTokens }: Counted): number => inputTokens + outputTokens + planTokens;

/** One row for each key: a statement changes none twice. */
const latest = (steps: readonly StepRow[]) => [...new Map(steps.map((step) => [step.key, step])).values()];

/** A text that goes on in the event before it. */
function grownBy(last: KeptEvent, event: RunEvent): KeptEvent | undefined {
  if (event.event !== 'message.delta' && event.event !== 'reasoning.delta') return undefined;
  if (last.event !== event.event || last.data.delta.length > longestDelta) return undefined;
  return { ...last, data: { delta: last.data.delta + event.data.delta } };
}
