import { expect, test } from 'vitest';
import type { Context } from '#core/context';
import type { Model } from '#core/target';
import type { RoutedCall } from '#core/routed-call';
import { guarded } from './guarded.ts';
import type { Check, EvaluationContext } from '../guards/check.ts';

const route: Model = { name: 'm', kind: 'chat', targets: [], limits: {}, rate: { input: 1, output: 1 }, created: 0, ownedBy: 'x' };
const turns = [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] as const;
const call: RoutedCall = { model: 'm', turns, tools: [], output: { type: 'text' }, sampling: {}, stream: false, extra: {}, route };

/** The steps that a check takes at a step of the request. */
async function stepsAt(step: number, count: number): Promise<readonly number[]> {
  let taken: number[] = [];
  const look = async (_: unknown, { nextStep }: EvaluationContext) => {
    taken = Array.from({ length: count }, nextStep);
    return [];
  };
  const check: Check = { name: 'judge', action: 'deny', stream: 'sentence', onFailure: 'refuse', evaluate: look };
  const inner = async function* () {};
  const generate = guarded({ guards: () => ({ of: () => ({ before: [check], after: [] }) }), refused: inner }, inner);
  const context = { step, signal: new AbortController().signal, caller: {}, progress: { attempts: [] } } as unknown as Context;
  await Array.fromAsync(generate(call, context));
  return taken;
}

test('no step of a check is one of the request itself, nor of a check at another step', async () => {
  const alternatives = [0, 1, 2, 7, 8].map((at) => at * 1_000_000);
  const ofOne = [...Array.from({ length: 12 }, (_, round) => round), 100, 109, 200, 2200, 10_000, 100_000];
  const own = alternatives.flatMap((first) => ofOne.map((step) => first + step));
  const checks = (await Promise.all(own.map((step) => stepsAt(step, 50)))).flat();
  expect(new Set([...own, ...checks]).size).toBe(own.length + own.length * 50);
  expect(checks.every((step) => Number.isSafeInteger(step))).toBe(true);
});
