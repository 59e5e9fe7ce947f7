/*
 * Loaded before the server: what a run writes at one moment is held back, or its answer is, for ever. So the process can be killed there. A run whose message
 * is `before 7` is held before its seventh write, and one with `after 7` behind it. What comes at about one time is written together, so what the seventh write
 * carries is chance: a moment that no test may miss is named by what is written. A run is held at the first write that carries `the call of send` or
 * `the result of send` (of any tool), at the first one whose last event is `usage` (or any other), and at the one that is `the end`. The test is told of each.
 */
import { RunRows } from '../../src/resources/runs/rows.ts';
import type { KeptEvent } from '../../src/resources/runs/writer.ts';

export interface Held {
  readonly run: string;
  readonly message: string;
  /** Which of its writes; 0: it has begun. */
  readonly at: number;
  /** Events of the run that are stored. */
  readonly stored: number;
  readonly state: 'running' | 'held' | 'over';
}

interface Watched {
  readonly userId: number;
  readonly message: string;
  /** The tools of its calls. */
  readonly tools: Map<string, string>;
  at: number;
  stored: number;
}

/** What is written: what it is called, and how many events it has. */
interface Carried {
  readonly names: readonly (string | undefined)[];
  readonly count: number;
}

const rows = RunRows.prototype;
const runs = new Map<string, Watched>();
const forEver = () => new Promise<never>(() => {});

const { add, write, wait, end } = rows;

function tell(run: string, state: Held['state']) {
  const { message, at, stored } = runs.get(run)!;
  process.send?.({ run, message, at, stored, state } satisfies Held);
}

rows.add = async function (run, job, access) {
  const { message } = this.opened(run.userId, run.asked) as { message: string };
  runs.set(run.id, { userId: run.userId, message, tools: new Map(), at: 0, stored: 0 });
  tell(run.id, 'running');
  return add.call(this, run, job, access);
};

/** A write of a run, unless it is the one to be held. */
async function written<Result>(run: string, { names, count }: Carried, work: () => Promise<Result>): Promise<Result> {
  const watched = runs.get(run)!;
  watched.at++;
  const held = async (when: string) => {
    if (![watched.at, ...names].some((name) => watched.message === `${when} ${name}`)) return;
    tell(run, 'held');
    await forEver();
  };
  await held('before');
  const result = await work();
  watched.stored += count;
  tell(run, 'running');
  await held('after');
  return result;
}

function carried({ tools }: Watched, events: readonly KeptEvent[]): Carried {
  const names = events.flatMap(({ event, data }) => {
    if (event === 'tool.call') tools.set(data.call, data.tool);
    return event === 'tool.call' || event === 'tool.result' ? [`the ${event.slice('tool.'.length)} of ${tools.get(data.call)}`] : [];
  });
  return { names: [...names, events.at(-1)?.event], count: events.length };
}

rows.write = function (id, holder, what) {
  const watched = runs.get(id)!;
  const events = what.events ? (this.opened(watched.userId, what.events.sealed) as unknown as readonly KeptEvent[]) : [];
  return written(id, carried(watched, events), () => write.call(this, id, holder, what));
};
rows.wait = function (id, ...more) {
  return written(id, { names: [], count: 0 }, () => wait.call(this, id, ...more));
};
rows.end = async function (id, ...more) {
  const isEnded = await written(id, { names: ['the end'], count: 1 }, () => end.call(this, id, ...more));
  tell(id, 'over');
  return isEnded;
};
