import { parentPort } from 'node:worker_threads';
import { hostileTo, textOf, type Hostile } from './texts.ts';

/** The text that an expression takes the longest for, of 2 KB and of 100 KB. */
export interface Found {
  readonly type: 'dearest' | 'slowest';
  readonly text: Hostile;
  readonly milliseconds: number;
}

/** Lengths of the texts of three rounds, and how many of the texts go on to the next one. At 2 KB a square stands out a hundredfold. */
const rounds = [
  { length: 2048, suspects: 10 },
  { length: 16_384, suspects: 3 },
];
const whole = 102_400;

/** The time of this thread for everything that an expression finds in a text, in milliseconds. */
function taken(expression: RegExp, text: string): number {
  const before = process.threadCpuUsage();
  text.replaceAll(expression, '');
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

const leastOf = (times: number, measure: () => number): number => Math.min(...Array.from({ length: times }, measure));
const say = (found: Found) => parentPort!.postMessage(found);

parentPort!.on('message', ({ source, flags }: { readonly source: string; readonly flags: string }) => {
  // One that is asked at a place only is asked at every place.
  const expression = new RegExp(source, `g${flags.replaceAll(/[gy]/g, '')}`);
  const timed = (texts: readonly Hostile[], length: number, times: number) =>
    texts
      .map((text) => ({ text, milliseconds: leastOf(times, () => taken(expression, textOf(text, length))) }))
      .toSorted((a, b) => b.milliseconds - a.milliseconds);
  let texts: readonly Hostile[] = hostileTo(source);
  for (const { length, suspects } of rounds) {
    const dearest = timed(texts, length, 1).slice(0, suspects);
    say({ type: 'dearest', ...dearest[0]! });
    texts = dearest.map(({ text }) => text);
  }
  say({ type: 'slowest', ...timed(texts, whole, 3)[0]! });
});
