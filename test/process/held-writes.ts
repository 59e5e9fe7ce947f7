/*
 * Loaded before the server: what a run writes at one moment is held back, or its answer is, for ever. So the process can be killed there. A run whose message
 * is `before 7` is held before its seventh write, one with `after 7` behind it, and one with `before the end` or `after the end` at the write that ends it,
 * whichever that is. The test is told of each.
 */
import { RunRows } from '../../src/resources/runs/rows.ts';

export interface Held {
  readonly run: string;
  readonly message: string;
  /** Which of its writes; 0: it has begun. */
  readonly at: number;
  readonly isHeld: boolean;
}

const rows = RunRows.prototype;
const messages = new Map<string, string>();
const writes = new Map<string, number>();
const tell = (held: Held) => process.send?.(held);
const forEver = () => new Promise<never>(() => {});

const { add, write, wait, end } = rows;

rows.add = async function (run, job, access) {
  const { message } = this.opened(run.userId, run.asked) as { message: string };
  messages.set(run.id, message);
  tell({ run: run.id, message, at: 0, isHeld: false });
  return add.call(this, run, job, access);
};

/** A write of a run, unless it is the one to be held. */
async function written<Result>(run: string, work: () => Promise<Result>, name?: string): Promise<Result> {
  const at = (writes.get(run) ?? 0) + 1;
  writes.set(run, at);
  const message = messages.get(run) ?? '';
  const held = async (when: string) => {
    if (message !== `${when} ${at}` && message !== `${when} ${name}`) return;
    tell({ run, message, at, isHeld: true });
    await forEver();
  };
  await held('before');
  const result = await work();
  tell({ run, message, at, isHeld: false });
  await held('after');
  return result;
}

rows.write = function (id, ...more) {
  return written(id, () => write.call(this, id, ...more));
};
rows.wait = function (id, ...more) {
  return written(id, () => wait.call(this, id, ...more));
};
rows.end = function (id, ...more) {
  return written(id, () => end.call(this, id, ...more), 'the end');
};
