import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import { Fault } from '#core/fault';
import type { Json } from '#core/json';
import { Permits } from '#core/permits';
import { RunWaits, type ModelAnswer, type QuestionAnswer, type Run, type RunEvent, type RunLimits, type ToolOutcome } from '#core/run';
import type { DeepQuestion } from '#resources/deep-question';
import { askedOf } from '#resources/deep-agent/question';

/** What a scripted model says to a call: a text, or calls of tools. */
export type Said = string | readonly { readonly name: string; readonly args: object | string }[];

export type Script = (asked: { readonly key: string; readonly place: string; readonly call: Omit<GenerateCall, 'stream'> }) => Said | Promise<Said>;

export interface Told {
  readonly place: string;
  readonly event: RunEvent;
}

/** A run without a database: its steps are kept in memory, so that a loop can be called again. */
export interface FakeRun {
  readonly run: Run;
  readonly events: Told[];
  readonly asked: { readonly key: string; readonly place: string; readonly call: Omit<GenerateCall, 'stream'> }[];
  readonly steps: Map<string, Json | undefined>;
  /** Answers of the user. */
  readonly answers: Map<string, QuestionAnswer>;
  readonly cancel: AbortController;
}

const caller: Caller = { userId: 1, email: 'ada@example.com', role: 'user', plan: 'default', teamIds: [], keyId: 1, keyName: 'key' };

export interface FakeRunDeps {
  readonly question: DeepQuestion;
  readonly script: Script;
  readonly limits?: Partial<RunLimits>;
  /** Of a run that is taken up again. */
  readonly steps?: Map<string, Json | undefined>;
}

const usual: RunLimits = { steps: 300, calls: 300, seconds: 1800, tokens: 2_000_000 };

export function fakeRun({ question, script, limits, steps = new Map() }: FakeRunDeps): FakeRun {
  const cancel = new AbortController();
  const fake: FakeRun = { run: undefined as unknown as Run, events: [], asked: [], steps, answers: new Map(), cancel };
  const of: Shared = { fake, script, done: new Map(steps), limits: { ...usual, ...limits }, used: { steps: 0, calls: 0, seconds: 0, tokens: 0 }, question };
  return Object.assign(fake, { run: partOf(of, 'main') });
}

interface Shared {
  /** Of the run before. */
  readonly done: ReadonlyMap<string, Json | undefined>;
  readonly fake: FakeRun;
  readonly script: Script;
  readonly limits: RunLimits;
  readonly used: { steps: number; calls: number; seconds: number; tokens: number };
  readonly question: DeepQuestion;
}

function partOf(shared: Shared, place: string): Run {
  const { fake, script, limits, used } = shared;
  const { signal } = fake.cancel;
  const { done } = shared;
  const emit = (event: RunEvent) => void fake.events.push({ place, event });
  async function step<Result extends Json | void>(key: string, work: () => Promise<Result>): Promise<Result> {
    signal.throwIfAborted();
    const name = `${place}/${key}`;
    if (done.has(name)) return JSON.parse(JSON.stringify(done.get(name) ?? null)) as Result;
    const result = await work();
    signal.throwIfAborted();
    fake.steps.set(name, result as Json);
    return result;
  }
  return {
    id: '7',
    requestId: 'request',
    place,
    asked: askedOf(shared.question),
    signal,
    limits,
    used: () => used,
    caller: async () => caller,
    emit,
    step,
    async answer(key, call, options = {}) {
      return (await step(key, async () => {
        if (used.steps >= limits.steps) throw new Fault('unprocessable', 'The run has used all of its answers.');
        used.steps++;
        fake.asked.push({ key, place, call });
        emit({ event: 'step.started', data: { step: used.steps, name: options.name ?? key } });
        const answer = answerOf(await script({ key, place, call }));
        const delta = options.shown ? options.shown.take(answer.text) + options.shown.end() : answer.text;
        if (!options.isQuiet && delta !== '') emit({ event: 'message.delta', data: { delta } });
        return answer as unknown as Json;
      })) as unknown as ModelAnswer;
    },
    async tool(call, work) {
      return (await step(`tool/${call.call}`, async () => {
        if (used.calls >= limits.calls) throw new Fault('unprocessable', 'The run has used all of its calls.');
        used.calls++;
        const { call: id, tool, server, arguments: args } = call;
        emit({ event: 'tool.call', data: { call: id, tool, server, arguments: args } });
        const outcome = await work({
          caller,
          context: contextOf(signal),
          ask: Object.assign(async () => ({ action: 'cancel' as const }), { run: 'run' }),
        }).catch(failedOf);
        emit({ event: 'tool.result', data: { call: id, text: outcome.text, isError: outcome.isError, scratch: null } });
        return outcome as unknown as Json;
      })) as unknown as ToolOutcome;
    },
    async ask(question) {
      const answer = fake.answers.get(question.question);
      if (answer) return answer;
      await step(`ask/${question.question}`, async () => emit({ event: 'question.asked', data: question }));
      throw new RunWaits({ type: 'question', ...question }, question.question);
    },
    async part(name, task, work) {
      const part = partOf(shared, `${place}/${name}`);
      await step(`started/${name}`, async () => emit({ event: 'agent.started', data: { name, task } }));
      return step(`part/${name}`, async () => {
        const text = await work(part);
        emit({ event: 'agent.finished', data: { name, text } });
        return text;
      });
    },
    async all(items, work) {
      const settled = await Promise.allSettled(items.map(work));
      return settled.map((one) => {
        if (one.status === 'rejected') throw one.reason;
        return one.value;
      });
    },
    scratch: async () => undefined,
  };
}

function failedOf(error: unknown): ToolOutcome {
  if (!(error instanceof Fault)) throw error;
  return { text: error.message, isError: true };
}

function answerOf(said: Said): ModelAnswer {
  if (typeof said === 'string') return { parts: [{ type: 'text', text: said }], text: said, calls: [], reason: 'stop' };
  const calls = said.map(({ name, args }, at) => {
    const json = typeof args === 'string' ? args : JSON.stringify(args);
    return { type: 'tool-call' as const, id: `call-${at}`, name, json };
  });
  return { parts: calls, text: '', calls, reason: 'tool' };
}

const contextOf = (signal: AbortSignal): Context => ({
  requestId: 'request',
  step: 0,
  caller,
  face: 'native',
  app: 'key',
  signal,
  strict: false,
  headers: {},
  permits: new Permits(),
  progress: { attempts: [] },
});
