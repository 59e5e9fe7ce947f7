import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { expressionsIn, type Expression } from './expressions/collect.ts';
import { slowness } from '../support/cpu-time.ts';
import type { Found } from './expressions/worker.ts';

const { expressions, dynamic } = expressionsIn(fileURLToPath(new URL('../../src', import.meta.url)));

/** Milliseconds of work that 100 KB may take. */
const most = 20;
/** Milliseconds after which an expression has failed and its thread is ended; the whole of them takes some 10 s of work. */
const patience = 30_000;

/** Asks each expression on a thread that can be ended. @returns those that take too long, and what for */
async function tooSlow(all: readonly Expression[], milliseconds = patience): Promise<string[]> {
  const begun = () => new Worker(new URL('./expressions/worker.ts', import.meta.url));
  const slow: string[] = [];
  let worker = begun();
  for (const { name, source, flags } of all) {
    const { promise, resolve, reject } = Promise.withResolvers<Found | undefined>();
    let dearest: Found | undefined;
    const timer = setTimeout(resolve, milliseconds, undefined);
    const heard = (found: Found) => (found.type === 'slowest' ? resolve(found) : (dearest = found));
    worker.on('message', heard);
    worker.once('error', reject);
    worker.postMessage({ source, flags });
    const slowest = await promise;
    clearTimeout(timer);
    worker.off('message', heard);
    worker.off('error', reject);
    if (!slowest) {
      await worker.terminate();
      worker = begun();
    }
    if (!slowest || slowest.milliseconds / slowness() > most) slow.push(`${name}, for ${JSON.stringify((slowest ?? dearest)?.text)}`);
  }
  await worker.terminate();
  return slow;
}

test('no regular expression takes more than 20 ms for 100 KB of any text', { timeout: 600_000 }, async () => {
  expect(expressions.length).toBeGreaterThan(300);
  expect(await tooSlow(expressions)).toEqual([]);
});

test.each([
  ['quadratic time', '\\/+$'],
  ['quadratic time on spaces', '\\s+$'],
  ['cubic time', '^\\s*```(?:json)?\\s*\\n([^]*?)\\n?\\s*```\\s*$'],
  ['exponential time', '^(?:a+)+$'],
])('an expression that takes %s is detected', { timeout: 120_000 }, async (name, source) => {
  expect(await tooSlow([{ name, source, flags: '' }], 2000)).toEqual([expect.stringContaining(name)]);
});

/** Expressions that are put together while the program runs, and why no stranger's text meets a stranger's pattern in them on the thread of the server. */
const reasons: Readonly<Record<string, string>> = {
  "faces/answer.ts new RegExp(`(?<![\\\\w-])${RegExp.escape(field)}(?![\\\\w-])`, 'g')": 'the name of a field, escaped, between two looks of one character',
  "gateway/searching/pages.ts new RegExp(`</${name}[\\\\s/>]`, 'gi')": 'a fixed text, made of a name out of a list of ours',
  "kit/json/check.ts new RegExp(rule.pattern, 'u')": 'patterns of our own schemas, which are looked at above',
  "kit/json/check.ts new RegExp(pattern, 'u')": 'patterns of our own schemas, which are looked at above',
  "kit/patterns/written-pattern.ts new RegExp(text.slice(flags.length), `g${[...new Set(letters)].join('')}`)":
    'of operators; it runs on a thread that can be ended',
  "providers/built-in/schema/pattern-tree.ts new RegExp(`\\\\p${name}`, 'u')": 'one class, asked of one character',
};

test('an expression that is built at run time has a documented reason to be harmless', () => {
  expect(dynamic.toSorted()).toEqual(Object.keys(reasons).toSorted());
});
