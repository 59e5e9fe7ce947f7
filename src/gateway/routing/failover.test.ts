import { eachOf } from '../../../test/support/fakes/each-event.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import type { GenerateCall } from '#core/call';
import type { Context, TargetContext } from '#core/context';
import type { Target } from '#core/target';
import { testClock } from '../../../test/support/fakes/clock.ts';
import type { AdmittedCall } from '../rules/admitted.ts';
import { namingProvider } from './named-provider.ts';
import { failover } from './failover.ts';
import { openHealth } from './health.ts';
import { openRetryBudget } from './retry-budget.ts';
import { proves } from '../../../test/support/proves.ts';
import { slowness } from '../../../test/support/cpu-time.ts';

const busy = new Fault('rate-limited', 'Too many requests.', { elsewhere: true, retryAfter: 3 });
const away = new Fault('overloaded', 'The provider cannot be reached.', { elsewhere: true });
const broken = new Fault('upstream-failed', 'The provider failed.', { elsewhere: true });
const silent = new Fault('timed-out', 'The provider was silent for too long.', { elsewhere: true });
const wrong = new Fault('invalid', 'temperature must be between 0 and 2.', { field: 'temperature' });
const lacking = new Fault('not-found', 'The provider does not have this model.', { elsewhere: true, absent: true });

/** As it is thrown for the targets below. */
const named = (fault: Fault) => namingProvider(fault, 'platform');

const started = (model: string): GenerateEvent => ({ type: 'started', model, ignored: [] });
const text = (words: string): GenerateEvent => ({ type: 'text', candidate: 0, text: words });

interface Scripted extends Omit<Target, 'generate'> {
  generate: Target['generate'];
  asked: number;
  says: readonly (GenerateEvent | Fault)[];
}

/** A target that yields these events in order, and throws the faults among them. */
function target(name: string, ...says: (GenerateEvent | Fault)[]): Scripted {
  const self: Scripted = {
    name,
    provider: 'platform',
    region: name,
    model: 'm',
    asked: 0,
    says,
    async *generate() {
      self.asked++;
      for (const one of self.says) {
        if (one instanceof Fault) throw one;
        yield [one];
      }
    },
  };
  return self;
}

let clock = testClock();
let settings = { cooldownSeconds: 1, cooldownMaxSeconds: 60 };
let chance = 0;
let generate = make();

function make() {
  const waits = () => ({ hangSeconds: { stream: 60, whole: 90 }, firstByteSeconds: 300, streamIdleSeconds: 120 });
  return failover({
    health: openHealth(
      () => settings,
      clock,
      () => chance,
    ),
    budget: openRetryBudget(() => 0.2, clock),
    waits,
    clock,
  });
}

/** Each round asks a target that hangs, then a healthy one. `waited`: the seconds that the first was given. */
async function hangs(rounds: number) {
  const tried: number[] = [];
  const waited = new Set<number>();
  for (let round = 0; round < rounds; round++) {
    const first = target(`hanging ${round}`);
    first.generate = async function* (_, { patience }) {
      waited.add(patience.head);
      throw silent;
    };
    tried.push((await ask([first, target('b', text('hello'))])).tried.length);
  }
  return { tried, waited };
}

beforeEach(() => {
  clock = testClock();
  settings = { cooldownSeconds: 1, cooldownMaxSeconds: 60 };
  chance = 0;
  generate = make();
});

const userSays = (text: string) => [{ role: 'user', parts: [{ type: 'text', text }] }];
/** Not a conversation, so the order is random. */
const task = { ask: (target: Target, context: TargetContext) => target.generate({} as GenerateCall, context) };

async function ask(targets: readonly (Target & { weight?: number })[], signal = new AbortController().signal, asked: object = { turns: userSays('hello') }) {
  const route = { name: 'm', targets: targets.map((one) => ({ target: one, ...(one.weight === undefined ? {} : { weight: one.weight }) })) };
  const context = { signal, caller: { userId: 1 }, progress: { attempts: [] as { region?: string }[] } };
  const received: string[] = [];
  let fault: unknown;
  try {
    for await (const event of eachOf(generate({ model: 'm', route, stream: false, ...asked } as unknown as AdmittedCall, context as unknown as Context)))
      received.push(event.type === 'text' ? event.text : event.type);
  } catch (error) {
    fault = error;
  }
  return { received, fault, tried: context.progress.attempts.map(({ region }) => region) };
}

describe('failover', () => {
  test('a busy target is left for the next and leaves no trace in the answer', async () => {
    const first = target('us-central1', started('a'), busy);
    const second = target('us-east1', started('b'), text('hello'));
    expect(await ask([first, second])).toEqual({ received: ['started', 'hello'], fault: undefined, tried: ['us-central1', 'us-east1'] });
  });

  test('a target that has spoken is never left', async () => {
    const second = target('us-east1', text('other'));
    expect(await ask([target('us-central1', text('half'), busy), second])).toMatchObject({ received: ['half'], fault: busy });
    expect(second.asked).toBe(0);
  });

  test("the caller's own mistake is told at once", async () => {
    const second = target('us-east1', text('hello'));
    expect((await ask([target('us-central1', wrong), second])).fault).toBe(wrong);
    expect(second.asked).toBe(0);
  });

  test('when all are out and one said to wait, the shortest wait is told', async () => {
    const longer = new Fault('rate-limited', 'Too many requests.', { elsewhere: true, retryAfter: 30 });
    expect((await ask([target('a', longer), target('b', away), target('c', busy)])).fault).toBe(busy);
  });

  test('when none said to wait, the last one decides', async () => {
    expect((await ask([target('a', broken), target('b', away)])).fault).toEqual(named(away));
  });

  test('after other failures of the provider only one more target is tried', async () => {
    const third = target('c', text('hello'));
    expect(await ask([target('a', broken), target('b', broken), third])).toMatchObject({ fault: named(broken), tried: ['a', 'b'] });
  });

  test('a caller who leaves is no fault of the target', async () => {
    const leaving = new AbortController();
    const first = target('a');
    first.generate = async function* () {
      leaving.abort(new Error('left'));
      throw away;
    };
    expect((await ask([first, target('b', text('hello'))], leaving.signal)).tried).toEqual(['a']);
    const again = target('a', text('still here'));
    expect((await ask([again])).received).toEqual(['still here']);
    expect((await ask([again, target('b', text('no'))])).tried).toEqual(['a']);
  });
});

describe('a target that cools down', () => {
  test('is skipped while another is left, and probed once its time is over', async () => {
    const first = target('a', busy);
    const second = target('b', text('hello'));
    await ask([first, second]);
    expect((await ask([first, second])).tried).toEqual(['b']);
    clock.advance(2999);
    expect((await ask([first, second])).tried).toEqual(['b']);
    clock.advance(1);
    first.says = [text('back')];
    expect(await ask([first, second])).toMatchObject({ received: ['back'], tried: ['a'] });
    expect((await ask([first, second])).tried).toEqual(['a']);
  });

  test('is tried all the same when no other is left', async () => {
    const only = target('a', busy);
    await ask([only]);
    only.says = [text('hello')];
    expect((await ask([only])).received).toEqual(['hello']);
  });

  test('waits longer with every failure, up to a bound', async () => {
    const first = target('a', away);
    const second = target('b', text('hello'));
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      await ask([first, second]);
      const before = first.asked;
      clock.advance(seconds * 1000 - 1);
      await ask([first, second]);
      expect(first.asked).toBe(before);
      clock.advance(1);
    }
  });

  test('lets only one call probe at a time', async () => {
    const first = target('a', busy);
    const second = target('b', text('hello'));
    await ask([first, second]);
    clock.advance(3000);
    const gate = Promise.withResolvers<void>();
    first.generate = async function* () {
      first.asked++;
      await gate.promise;
      yield [text('back')];
    };
    const probing = ask([first, second]);
    expect((await ask([first, second])).tried).toEqual(['b']);
    gate.resolve();
    expect((await probing).received).toEqual(['back']);
  });

  test('is probed until the first word, not until the end of the answer', async () => {
    const first = target('a', busy);
    const second = target('b', text('hello'));
    await ask([first, second]);
    clock.advance(3000);
    const gate = Promise.withResolvers<void>();
    first.generate = async function* () {
      first.asked++;
      yield [text('back')];
      if (first.asked === 2) await gate.promise;
    };
    const probing = ask([first, second]);
    await new Promise(setImmediate);
    expect((await ask([first, second])).tried).toEqual(['a']);
    gate.resolve();
    expect((await probing).received).toEqual(['back']);
  });

  describe('when no other is left', () => {
    /** A target that answers when the gate opens, and the call that waits for it. */
    async function probed(first: Scripted) {
      await ask([first]);
      const gate = Promise.withResolvers<void>();
      first.generate = async function* () {
        first.asked++;
        await gate.promise;
        yield [text('back')];
      };
      return { gate, probing: ask([first]), before: first.asked };
    }

    test('holds the others back only as long as a refusal would take, however long the answer takes', async () => {
      const only = target('a', busy);
      const { gate, probing } = await probed(only);
      expect((await ask([only])).fault).toMatchObject({ code: 'overloaded' });
      clock.advance(4999);
      expect((await ask([only])).fault).toMatchObject({ code: 'overloaded' });
      clock.advance(1);
      const others = [ask([only]), ask([only])];
      gate.resolve();
      for (const one of [probing, ...others]) expect((await one).received).toEqual(['back']);
    });

    test('lets one more in at a time where it was silent: a hang takes no crowd with it', async () => {
      const only = target('a', silent);
      const { gate, probing, before } = await probed(only);
      clock.advance(5000);
      const others = Array.from({ length: 10 }, () => ask([only]));
      expect(only.asked).toBe(before + 1);
      gate.resolve();
      await probing;
      expect((await Promise.all(others)).filter(({ fault }) => fault === undefined)).toHaveLength(1);
    });

    test('is not overrun when a probe fails while another is under way', async () => {
      const only = target('a', busy);
      const { gate, probing } = await probed(only);
      clock.advance(5000);
      only.generate = target('a', busy).generate;
      await ask([only]);
      expect((await ask([only])).fault).toMatchObject({ code: 'overloaded' });
      gate.resolve();
      await probing;
      expect((await ask([target('a', text('hello'))])).received).toEqual(['hello']);
    });
  });

  test(proves('F-24', 'all of them for ten minutes under 100 requests a second: fast refusals, a probe a second each, and back within a second'), async () => {
    const targets = [target('a', away), target('b', away), target('c', busy)];
    const seconds: number[] = [];
    const took: number[] = [];
    for (let second = 0; second < 600; second++) {
      const before = targets.reduce((sum, { asked }) => sum + asked, 0);
      for (let request = 0; request < 100; request++) {
        const startedAt = performance.now();
        const { fault } = await ask(targets);
        took.push(performance.now() - startedAt);
        expect(['overloaded', 'rate-limited']).toContain((fault as Fault).code);
        clock.advance(10);
      }
      seconds.push(targets.reduce((sum, { asked }) => sum + asked, 0) - before);
    }
    expect(Math.max(...seconds.slice(11))).toBeLessThanOrEqual(3);
    expect(took.toSorted((a, b) => a - b)[took.length * 0.99]).toBeLessThan(50 * slowness()); // milliseconds
    for (const one of targets) one.says = [text('back')];
    clock.advance(1000);
    expect(await ask(targets)).toMatchObject({ received: ['back'] });
    expect(await ask(targets)).toMatchObject({ received: ['back'] });
  });

  test('a stream that breaks off after its first word cools its target all the same', async () => {
    const second = target('b', text('hello'));
    await ask([target('a', text('half'), silent), second]);
    expect((await ask([target('a', text('whole')), second])).tried).toEqual(['b']);
  });

  test('calls that fail together are one failure', async () => {
    const second = target('b', text('hello'));
    const gate = Promise.withResolvers<void>();
    const first = target('a');
    first.generate = async function* () {
      await gate.promise;
      throw away;
    };
    const asked = Array.from({ length: 10 }, () => ask([first, second]));
    gate.resolve();
    await Promise.all(asked);
    clock.advance(1000);
    expect((await ask([target('a', text('back')), second])).tried).toEqual(['a']);
  });

  test('a call that leaves late does not end the probe of another', async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const second = target('b', text('hello'));
    const first = target('a');
    first.generate = async function* (_, { signal }) {
      await gates[first.asked++]?.promise;
      if (signal.aborted) throw signal.reason;
      yield [text('back')];
    };
    const leaving = new AbortController();
    const early = ask([first, second], leaving.signal);
    await ask([target('a', busy), second]);
    clock.advance(3000);
    const probing = ask([first, second]);
    leaving.abort(new Error('left'));
    gates[0]!.resolve();
    await early;
    expect((await ask([target('a', text('second probe')), second])).tried).toEqual(['b']);
    gates[1]!.resolve();
    await probing;
  });

  test('does not, where cooldowns are switched off', async () => {
    settings = { cooldownSeconds: 0, cooldownMaxSeconds: 60 };
    const first = target('a', busy);
    const second = target('b', text('hello'));
    for (let round = 0; round < 3; round++) expect((await ask([first, second])).tried).toEqual(['a', 'b']);
  });

  test('a model that a target lacks is asked for there last for ten minutes', async () => {
    const first = target('a', lacking);
    const second = target('b', text('hello'));
    await ask([first, second]);
    clock.advance(599_000);
    expect((await ask([first, second])).tried).toEqual(['b']);
    clock.advance(2000);
    expect((await ask([first, second])).tried).toEqual(['a', 'b']);
    expect((await ask([first, target('busy', busy)])).tried).toEqual(['busy', 'a']);
  });

  test('a target that lacks the model does not hide that another is busy', async () => {
    expect((await ask([target('a', away), target('b', lacking)])).fault).toEqual(named(away));
  });

  test('a request that is too large for one target goes to the next, and the first is not left alone for it', async () => {
    const first = target('a', new Fault('rate-limited', 'larger', { elsewhere: true, exceedsLimit: true }));
    expect((await ask([first, target('b', text('hello'))])).tried).toEqual(['a', 'b']);
    first.says = [text('again')];
    expect((await ask([first, target('b', text('hello'))])).received).toEqual(['again']);
  });
});

describe('a model that every target lacks', () => {
  test('is not found, and every caller has them asked again: nobody takes a model from anybody', async () => {
    const targets = [target('a', lacking), target('b', lacking)];
    for (let round = 0; round < 3; round++) expect(await ask(targets)).toMatchObject({ fault: named(lacking), tried: ['a', 'b'] });
    expect((await ask([targets[0]!, target('b', text('hello'))])).received).toEqual(['hello']);
  });

  test('is forgotten among many others rather than filling the memory', async () => {
    const isRemembered = async (name: string) => (await ask([target(name, text('hello')), target('other', text('hello'))])).tried[0] === 'other';
    for (let number = 0; number < 10_001; number++) await ask([target(`name ${number}`, lacking)]);
    expect([await isRemembered('name 0'), await isRemembered('name 10000')]).toEqual([false, true]);
    const long = 'n'.repeat(100_000);
    await ask([target(long, lacking)]);
    expect(await isRemembered(long)).toBe(false);
  });
});

describe('the order of targets', () => {
  test('for what is no conversation, targets with a weight are drawn by lot, those without are fallbacks as listed', async () => {
    const drawn = async (targets: readonly (Target & { weight?: number })[]) => ask(targets, undefined, task);
    const targets = [target('fallback', away), { ...target('light', away), weight: 1 }, { ...target('heavy', away), weight: 9 }];
    chance = 0.05;
    expect((await drawn(targets)).tried).toEqual(['light', 'heavy', 'fallback']);
    generate = make();
    chance = 0.5;
    expect((await drawn(targets)).tried).toEqual(['heavy', 'light', 'fallback']);
  });

  describe('under weights', () => {
    const hello = text('hello');
    const first = async (targets: readonly (Target & { weight?: number })[], words: string) =>
      (await ask(targets, undefined, { turns: userSays(words) })).tried[0];
    const conversations = Array.from({ length: 2000 }, (_, at) => `conversation ${at}`);

    test('a conversation keeps to its target, and all of them together keep to the weights', async () => {
      const targets = [
        { ...target('one', hello), weight: 1 },
        { ...target('two', hello), weight: 3 },
      ];
      const tried = new Map<string, string>();
      for (const words of conversations) tried.set(words, (await first(targets, words))!);
      chance = 0.99;
      for (const words of conversations.slice(0, 50)) expect(await first(targets, words)).toBe(tried.get(words));
      const share = [...tried.values()].filter((name) => name === 'one').length / conversations.length;
      expect(share).toBeGreaterThan(0.21);
      expect(share).toBeLessThan(0.29);
    });

    test('what the system was told and what the user said first make the conversation; what was said since does not', async () => {
      const targets = ['a', 'b', 'c', 'd'].map((name) => ({ ...target(name, hello), weight: 1 }));
      const asked = async (...turns: object[]) => (await ask(targets, undefined, { turns })).tried[0];
      const system = { role: 'system', parts: [{ type: 'text', text: 'You are kind.' }] };
      for (const words of conversations.slice(0, 20)) {
        const [opening] = userSays(words);
        const begun = await asked(system, opening!);
        expect(await asked(system, opening!, { role: 'model', parts: [{ type: 'text', text: words }] }, ...userSays('go on'))).toBe(begun);
      }
      const others = await Promise.all(conversations.slice(0, 20).map((words) => asked(...userSays(words))));
      expect(new Set(others).size).toBe(4);
    });

    test('when a target goes, only its own conversations move', async () => {
      const targets = ['a', 'b', 'c'].map((name) => ({ ...target(name, hello), weight: 1 }));
      for (const words of conversations.slice(0, 200)) {
        const before = await first(targets, words);
        if (before !== 'c') expect(await first(targets.slice(0, 2), words)).toBe(before);
      }
    });

    test('a target that keeps failing is tried last, never more than half of them, and is asked again after half a minute', async () => {
      const scripted = ['a', 'b', 'c', 'd'].map((name) => target(name, name < 'd' ? broken : hello));
      const targets = scripted.map((one) => ({ ...one, weight: 1 }));
      for (const words of conversations.slice(0, 100)) await first(targets, words);
      const tried = new Set(await Promise.all(conversations.slice(0, 100).map((words) => first(targets, words))));
      expect(tried.size).toBe(2); // of three failing targets, two are skipped
      expect(tried).toContain('d');
      for (const one of scripted) one.says = [hello];
      clock.advance(31_000);
      for (const words of conversations.slice(0, 100)) await first(targets, words);
      expect(new Set(await Promise.all(conversations.slice(0, 100).map((words) => first(targets, words))))).toEqual(new Set(['a', 'b', 'c', 'd']));
    });

    test('and so is one that is much slower than the others, unless cooldowns are switched off', async () => {
      const slow = { ...target('slow', hello), weight: 1 };
      slow.generate = async function* () {
        clock.advance(3000);
        yield [hello];
      };
      const targets = [slow, { ...target('b', hello), weight: 1 }, { ...target('c', hello), weight: 1 }];
      const firsts = async () => {
        const tried = [];
        for (const words of conversations.slice(0, 60)) tried.push(await first(targets, words));
        return tried.filter((name) => name === 'slow').length;
      };
      const before = await firsts();
      expect(before).toBeGreaterThan(0);
      expect(before).toBeLessThan(10);
      settings = { cooldownSeconds: 0, cooldownMaxSeconds: 60 };
      expect(await firsts()).toBeGreaterThan(10);
    });

    test('a listed order is kept, however slow or bad its first is', async () => {
      const targets = [target('first', broken), target('second', hello)];
      for (const words of conversations.slice(0, 20)) expect(await first(targets, words)).toBe('first');
    });
  });

  test('moves after a hang are bounded by the retry budget', async () => {
    const { tried } = await hangs(30);
    expect(tried.filter((count) => count === 2).length).toBeLessThanOrEqual(12);
    expect(tried[0]).toBe(2);
  });

  test('also moves to another model, which are made outside', async () => {
    const waited: number[] = [];
    for (let round = 0; round < 30; round++) {
      const last = target(`hanging ${round}`);
      last.generate = async function* (_, { patience }) {
        waited.push(patience.head);
        throw silent;
      };
      await ask([last], undefined, { turns: userSays('hello'), movesOn: true });
    }
    expect(waited[0]).toBe(90);
    expect(waited.at(-1)).toBe(300);
  });

  test('but not where cooldowns are switched off; a hang is still noticed while another target is left', async () => {
    settings = { cooldownSeconds: 0, cooldownMaxSeconds: 60 };
    const { tried, waited } = await hangs(30);
    expect(new Set(tried)).toEqual(new Set([2]));
    expect(waited).toEqual(new Set([90]));
  });
});
