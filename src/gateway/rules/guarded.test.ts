import { Permits } from '#core/permits';
import { expect, test } from 'vitest';
import type { Context } from '#core/context';
import { Fault } from '#core/fault';
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
  const generate = guarded({ guards: () => ({ of: () => ({ before: [check], after: [] }) }), recordRefusal: async () => {} }, inner);
  const context = { step, signal: new AbortController().signal, caller: {}, permits: new Permits(), progress: { attempts: [] } } as unknown as Context;
  await Array.fromAsync(generate(call, context));
  return taken;
}

/** The outcome for a call and its context when a check throws this error. */
async function refusedAt(when: 'before' | 'after', fault: Fault) {
  const check: Check = { name: 'judge', action: 'deny', stream: 'sentence', onFailure: 'refuse', evaluate: () => Promise.reject(fault) };
  const recorded: unknown[] = [];
  const made: Context[] = [];
  const generate = guarded(
    {
      guards: () => ({ of: () => ({ before: [], after: [], [when]: [check] }) }),
      recordRefusal: async (_, __, refusal) => void recorded.push(refusal),
    },
    async function* (_, context) {
      made.push(context);
      yield [
        { type: 'text', candidate: 0, text: 'hello' },
        { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
      ];
    },
  );
  const context = { step: 0, signal: new AbortController().signal, caller: {}, permits: new Permits(), progress: { attempts: [] } } as unknown as Context;
  await expect(Array.fromAsync(generate(call, context))).rejects.toBe(fault);
  return { recorded, made, progress: context.progress };
}

test('a check that refuses a call has the refusal recorded, and nothing is asked', async () => {
  const fault = new Fault('too-large', 'There is too much to look at.');
  expect(await refusedAt('before', fault)).toEqual({ recorded: [fault], made: [], progress: { attempts: [] } });
});

test('a check that refuses an answer leaves why with the call that was made, and with no other', async () => {
  const fault = new Fault('too-large', 'There is too much to look at.');
  const { recorded, made, progress } = await refusedAt('after', fault);
  expect([recorded, made.map(({ review }) => review?.refusal), progress]).toEqual([[], [fault], { attempts: [] }]);
});

test('no step of a check is one of the request itself, nor of a check at another step', async () => {
  const alternatives = [0, 1, 2, 7, 8].map((at) => at * 1_000_000);
  const ofOne = [...Array.from({ length: 12 }, (_, round) => round), 100, 109, 200, 2200, 10_000, 100_000];
  const own = alternatives.flatMap((first) => ofOne.map((step) => first + step));
  const checks = (await Promise.all(own.map((step) => stepsAt(step, 50)))).flat();
  expect(new Set([...own, ...checks]).size).toBe(own.length + own.length * 50);
  expect(checks.every((step) => Number.isSafeInteger(step))).toBe(true);
});

test('the words of a sound are checked as one text, in however many pieces they come', async () => {
  const check: Check = {
    name: 'secrets',
    action: 'mask',
    stream: 'sentence',
    onFailure: 'refuse',
    evaluate: async (texts) => texts.map((text) => (text.includes('secret') ? { action: 'mask', text: text.replaceAll('secret', '***') } : undefined)),
  };
  const sound = (transcript?: string) =>
    ({ type: 'part', candidate: 0, part: { type: 'media', kind: 'audio', base64: 'AA==', ...(transcript === undefined ? {} : { transcript }) } }) as const;
  const generate = guarded({ guards: () => ({ of: () => ({ before: [], after: [check] }) }), recordRefusal: async () => {} }, async function* () {
    yield [sound('my sec'), sound(), sound('ret is'), { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' }];
  });
  const context = { step: 0, signal: new AbortController().signal, caller: {}, permits: new Permits(), progress: { attempts: [] } } as unknown as Context;
  const events = (await Array.fromAsync(generate({ ...call, stream: true }, context))).flat();
  expect(events.slice(0, 3)).toEqual([sound('my *** is'), sound(''), sound('')]);
});
