/* Clients that ask for runs in the background, and what becomes of these: each time one is taken up is a step of its own. */
import { Permits } from '#core/permits';
import { Fault, faultOf } from '#core/fault';
import type { Generate } from '#core/generate';
import { isRunning } from '../../src/faces/chatcompat/responses/continuation.ts';
import type { Entry } from '../../src/faces/chatcompat/responses/stored-body.ts';
import { fresh, nameOf, tokensOf, type Asked } from './clients.ts';
import type { Serving } from './machine.ts';
import type { RunsModel } from './runs-model.ts';

/** Asks for a run. `answer` is whether it was taken on, as far as the client knows. */
export async function begin(asked: Asked, { life, running, rights, runs }: Serving): Promise<void> {
  const leaving = new AbortController();
  running.add(leaving);
  const { requestId } = asked;
  asked.answer = 'running';
  life.onEnd(() => {
    if (asked.answer === 'running') asked.answer = 'died';
  });
  try {
    const caller = await rights.identify(asked.keyId);
    const circumstances = { requestId, step: 0, caller, face: 'f', app: 'a', strict: false, headers: {}, permits: new Permits(), progress: { attempts: [] } };
    asked.at = life.clock.now();
    await runs!.begin(asked, { ...circumstances, signal: leaving.signal });
    if (life.isAlive) asked.answer = 'whole';
  } catch (error) {
    if (life.isAlive) asked.answer = faultOf(error);
  } finally {
    running.delete(leaving);
  }
}

export interface TakesParts {
  readonly calls: Map<string, Asked>;
  /** Those that were asked for, by their requests. */
  readonly asked: ReadonlyMap<string, Asked>;
  /** Told before anybody hears the end. */
  readonly ended: (asked: Asked) => void;
  readonly over: (asked: Asked) => void;
}

/** Sees what a process asks of the gateway for runs, as clients see what they ask. */
export function witnessedTakes({ calls, asked: all, ended, over }: TakesParts): (generate: Generate, serving: Serving) => Generate {
  return (generate, serving) =>
    async function* (call, context) {
      const { life } = serving;
      const name = nameOf(context);
      const run = all.get(context.requestId)!;
      const asked = calls.get(name) ?? { ...run, ...fresh(), step: context.step, keyId: context.caller.keyId };
      Object.assign(asked, { answer: 'running', at: life.clock.now(), by: serving });
      calls.set(name, asked);
      life.onEnd(() => {
        if (asked.answer === 'running') asked.answer = 'died';
      });
      try {
        for await (const said of generate(call, context)) {
          for (const event of said) {
            if (event.type !== 'text') continue;
            asked.heard += tokensOf(event.text);
            asked.heardFrom.add(event.text[0]!);
          }
          yield said;
        }
        if (!life.isAlive) return;
        ended(asked);
        asked.answer = 'whole';
      } catch (error) {
        if (life.isAlive) asked.answer = faultOf(error);
        throw error;
      } finally {
        if (life.isAlive && asked.answer === 'running') asked.answer = new Fault('overloaded', 'Nobody listens any more.');
        if (life.isAlive) over(asked);
      }
    };
}

const codeOf = ({ body: { response } }: Entry) => (response['error'] as { readonly code?: string } | null)?.code;

/** What is wrong with runs when all is over: each has ended, and none without having been answered. */
export function* wrongRuns(model: RunsModel, asked: ReadonlyMap<string, Asked>, calls: ReadonlyMap<string, Asked>): Generator<string> {
  const kept = new Map(model.entries.map((entry) => [entry.body.run!.requestId, entry]));
  for (const { requestId, answer } of asked.values()) {
    const status = kept.get(requestId)?.status;
    if (status === undefined) {
      if (answer === 'whole') yield `the run ${requestId} was taken on and is not there`;
    } else if (isRunning(status)) yield `the run ${requestId} has no end: it is ${status}`;
    else if (status === 'completed' && ![...calls.values()].some((one) => one.requestId === requestId && one.answer === 'whole'))
      yield `the run ${requestId} is completed and was never answered`;
    // No provider in these lives says so: it was a limit of the plan, and that frees.
    else if (status === 'failed' && codeOf(kept.get(requestId)!) === 'rate_limit_exceeded')
      yield `the run ${requestId} failed at a limit and did not wait for it`;
  }
}
