/* The world outside: clients that ask, and the providers that answer. Both know what they have seen. */
import { Fault, faultOf } from '#core/fault';
import type { GenerateCall } from '#core/call';
import type { Events } from '#core/event';
import type { Caller, Context } from '#core/context';
import { Permits } from '#core/permits';
import type { Model, Target } from '#core/target';
import type { Serving } from './machine.ts';
import type { Life, World } from './world.ts';

/** In tokens: what the model says at most, what a prompt has, and what is set aside at a time where no maximum is named. */
export const route = { output: 400, prompt: 10, step: 200 };

/** What befalls a call: nothing; the first provider is busy; all are; the one that spoke falls silent; the client leaves. */
export type Ending = 'whole' | 'busy' | 'outage' | 'cut' | 'leaves';

export interface Asked {
  readonly requestId: string;
  /** Of the request: 0, or 1 for what the gateway asks in the course of it. */
  readonly step: number;
  /** Asked after it, in the same request, where it was answered. */
  readonly next: Asked | undefined;
  readonly userId: number;
  readonly keyId: number;
  readonly max: number | undefined;
  readonly stream: boolean;
  /** What the model says, in tokens. */
  readonly says: number;
  /** Milliseconds for a piece of it, at most. */
  readonly pace: number;
  readonly fate: Ending;
  /** `whole`: with its end; `died`: the connection was gone. */
  answer: 'running' | 'whole' | 'died' | 'nobody' | Fault;
  /** Tokens the client was given, and by whom. */
  heard: number;
  readonly heardFrom: Set<string>;
  /** What the providers were asked, and what they said. */
  readonly upstream: { readonly target: string; said: number }[];
  /** When it was asked, as its process had it. */
  at: number;
  by: Serving | undefined;
}

/** What is not known of a call before it is asked. */
export const fresh = () => ({ answer: 'nobody' as const, heard: 0, heardFrom: new Set<string>(), upstream: [], at: 0, by: undefined });

/** A step of a request by one word: `r7`, `r7/1`. */
export const nameOf = ({ requestId, step }: { readonly requestId: string; readonly step: number }) => (step === 0 ? requestId : `${requestId}/${step}`);

/** Tokens in one piece. */
const piece = 20;
/** Counts as one token, and so does each of several. */
const word = ' word';

export const tokensOf = (text: string): number => text.length / word.length;

/**
 * A model with two targets, as a process asks it.
 *
 * @param isKnown does the process know how much it says at most?
 * @param used told when it is asked, and of each piece that it says
 */
export function modelFor(
  calls: ReadonlyMap<string, Asked>,
  chance: () => number,
  isKnown: boolean,
  used: (asked: Asked, life: Life) => void = () => {},
): (life: Life) => Model {
  return (life) => ({
    name: 'm',
    kind: 'chat',
    targets: ['a', 'b'].map((name) => ({ target: target(name, life) })),
    limits: isKnown ? { output: route.output } : {},
    rate: { input: 1, output: 1 },
    price: { input: 1, output: 1 },
    created: 0,
    ownedBy: 'x',
  });

  function target(name: string, life: Life): Target {
    const { clock } = life;
    return {
      name,
      provider: name,
      model: 'm',
      async *generate(call: GenerateCall, { requestId, step, signal }: Context): AsyncGenerator<Events> {
        const asked = calls.get(nameOf({ requestId, step }))!;
        const seen = { target: name, said: 0 };
        asked.upstream.push(seen);
        used(asked, life);
        const says = Math.min(asked.says, call.sampling.maxTokens ?? route.output);
        await clock.sleep(chance() * 30, signal);
        if (asked.fate === 'outage' || (asked.fate === 'busy' && name === 'a')) throw new Fault('overloaded', 'busy', { elsewhere: true });
        yield [{ type: 'started', model: 'm', ignored: [] }];
        for (let said = 0; said < says; said += piece) {
          if (call.stream) await clock.sleep(chance() * asked.pace, signal);
          used(asked, life);
          const tokens = Math.min(piece, says - said);
          seen.said += tokens;
          yield [{ type: 'text', candidate: 0, text: word.repeat(tokens) }];
          if (asked.fate === 'cut' && said > says / 2) throw new Fault('upstream-failed', 'cut', { elsewhere: true });
        }
        yield [
          { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
          { type: 'usage', usage: { input: route.prompt, output: says, source: 'provider' } },
        ];
      },
    };
  }
}

/** Asks one process. The client knows how it ended, but for what a process did when it was dead already. @param ended told before the client hears the end */
export async function ask(asked: Asked, serving: Serving, world: World, ended: (asked: Asked) => void): Promise<void> {
  const { life, running, rights } = serving;
  const leaving = new AbortController();
  const permits = new Permits();
  const ongoing: Cuttable = { caller: undefined, cut: (reason) => leaving.abort(reason) };
  running.add(leaving);
  rights.ongoing.add(ongoing);
  life.onEnd(() => {
    for (const one of [asked, asked.next]) if (one?.answer === 'running') one.answer = 'died';
  });
  const { requestId } = asked;
  if (asked.fate === 'leaves') world.after((Number.parseInt(requestId.slice(1), 10) * 97) % 600, () => leaving.abort(new Error('left')));
  permits.hold();
  try {
    const found = rights.identify(asked.keyId);
    const caller = (ongoing.caller = found instanceof Promise ? await found : found);
    const context = { requestId, caller, face: 'f', app: 'a', signal: leaving.signal, strict: false, headers: {}, permits, progress: { attempts: [] } };
    await answered(asked, serving, { ...context, step: 0 }, ended);
    if (asked.next && asked.answer === 'whole') await answered(asked.next, serving, { ...context, step: 1 }, ended);
  } catch (error) {
    if (life.isAlive) asked.answer = faultOf(error); // nobody knows who asks
  } finally {
    if (life.isAlive) permits.release();
    running.delete(leaving);
    rights.ongoing.delete(ongoing);
  }
}

interface Cuttable {
  caller: Caller | undefined;
  cut(reason: Fault): void;
}

async function answered(asked: Asked, serving: Serving, context: Context, ended: (asked: Asked) => void): Promise<void> {
  const { life, generate } = serving;
  asked.answer = 'running';
  asked.at = life.clock.now();
  asked.by = serving;
  const sampling = asked.max === undefined ? {} : { maxTokens: asked.max };
  const turns = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'hello' }] }];
  const call: GenerateCall = { model: 'm', turns, tools: [], output: { type: 'text' }, sampling, stream: asked.stream, extra: {} };
  try {
    for await (const said of generate(call, context)) {
      if (!life.isAlive) return;
      for (const event of said) {
        if (event.type !== 'text') continue;
        asked.heard += tokensOf(event.text);
        asked.heardFrom.add(event.text[0]!);
      }
    }
    if (!life.isAlive) return;
    ended(asked); // the last frame goes out now
    asked.answer = 'whole';
  } catch (error) {
    if (life.isAlive) asked.answer = faultOf(error);
  }
}
