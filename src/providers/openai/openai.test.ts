import { Permits } from '#core/permits';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { decodeRequest } from '#dialects/openai/chat/decode-request';
import { systemClock } from '#kit/async/clock';
import { scan } from '#kit/json/scan';
import { openUpstreams, type Upstreams } from '#kit/upstream/pool';
import type { GenerateCall } from '#core/call';
import type { GenerateEvent } from '#core/event';
import type { Fault } from '#core/fault';
import type { TargetContext } from '#core/context';
import { testClock } from '../../../test/support/fakes/clock.ts';
import {
  altered,
  always,
  body,
  ok,
  refusal,
  secretWord,
  startUpstream,
  stream,
  type Behaviour,
  type Upstream,
} from '../../../test/support/fakes/upstream/index.ts';
import { openaiChat } from './chat.ts';

let upstream: Upstream;
let upstreams: Upstreams;

beforeAll(async () => {
  upstream = await startUpstream();
  upstreams = openUpstreams({ clock: systemClock, connectSeconds: () => 5, proxy: '', noProxy: '' });
});
afterAll(async () => {
  await upstreams.close();
  await upstream.close();
});
afterEach(() => upstream.reset());

const request = { model: 'm', messages: [{ role: 'user', content: 'one two three' }] };

const provider = (clock = systemClock) =>
  openaiChat.make('fake', { dialect: 'openai-chat', baseUrl: `${upstream.url}/v1`, apiKeys: ['sk-1'] }, upstreams, clock)!.targets('m', {})!.target;

const context = (firstByte = 5): TargetContext => ({
  requestId: 'req_1',
  step: 0,
  caller: { userId: 1, email: '', role: 'user', plan: '', teamIds: [], keyId: 1, keyName: '' },
  face: 'chatcompat',
  app: '',
  signal: new AbortController().signal,
  strict: false,
  headers: {},
  permits: new Permits(),
  progress: { attempts: [] },
  patience: { head: 5, firstByte, idle: 5 },
});

const callOf = (more: object): GenerateCall => decodeRequest({ ...request, ...more }).call;

/** The same call with a passthrough, and what it forwarded. */
function laneCall(more: object): { readonly call: GenerateCall; readonly text: () => string } {
  const bytes = Buffer.from(JSON.stringify({ ...request, ...more }));
  const { call, usageWanted } = decodeRequest(JSON.parse(bytes.toString()));
  const written: Uint8Array[] = [];
  const passthrough = {
    dialect: 'openai-chat',
    request: { written: { bytes, places: scan(bytes) } },
    usageWanted,
    write: (one: Uint8Array) => written.push(one) > 0,
    drained: () => Promise.resolve(),
  };
  return { call: { ...call, passthrough }, text: () => Buffer.concat(written).toString() };
}

async function eventsFrom(target: ReturnType<typeof provider>, call: GenerateCall, firstByte?: number): Promise<readonly GenerateEvent[]> {
  const events: GenerateEvent[] = [];
  for await (const batch of target.generate(call, context(firstByte))) events.push(...batch);
  return events;
}

const faultOf = (promise: Promise<unknown>): Promise<Fault> =>
  promise.then(
    () => expect.fail('It was answered.'),
    (fault: unknown) => fault as Fault,
  );
const tokensPassed = (events: readonly GenerateEvent[]) => events.reduce((sum, event) => sum + (event.type === 'passed' ? event.tokens : 0), 0);

describe('an answer that passes as it came', () => {
  test.each([true, false])('without usage is counted by us (stream: %s)', async (stream) => {
    upstream.script(ok({ text: 'word '.repeat(40).trim(), usage: 'missing' }));
    const { call, text } = laneCall({ stream });
    const events = await eventsFrom(provider(), call);
    expect(text()).toContain('word');
    expect(tokensPassed(events)).toBeGreaterThanOrEqual(40);
    expect(tokensPassed(events)).toBeLessThan(100);
    expect(events.map(({ type }) => type).lastIndexOf('passed')).toBeLessThan(events.map(({ type }) => type).indexOf('finished'));
  });

  test('without usage and with a tool call alone is counted too', async () => {
    upstream.script(ok({ text: '', tools: [{ name: 'f', json: JSON.stringify({ a: 'x'.repeat(80) }) }], usage: 'missing' }));
    const events = await eventsFrom(provider(), laneCall({ stream: false }).call);
    expect(tokensPassed(events)).toBeGreaterThanOrEqual(20);
  });

  test.each([true, false])('with usage can still be counted by us, should that be impossible (stream: %s)', async (stream) => {
    upstream.script(ok({ text: 'word '.repeat(40).trim() }));
    const events = await eventsFrom(provider(), laneCall({ stream }).call);
    expect(events.some(({ type }) => type === 'usage')).toBe(true);
    const text = events.map((event) => (event.type === 'passed' ? (event.text ?? '') : '')).join('');
    expect(tokensPassed(events) || text.length / 4).toBeGreaterThanOrEqual(40);
  });
});

test('a stream gives up the request when its answer is heard, and keeps it where another target may be asked', async () => {
  const refused = laneCall({ stream: true }).call;
  upstream.script(refusal(503));
  await faultOf(eventsFrom(provider(), refused));
  expect(refused.passthrough!.request.written).toBeDefined();
  const heard = laneCall({ stream: true }).call;
  upstream.script(ok());
  await eventsFrom(provider(), heard);
  expect(heard.passthrough!.request.written).toBeUndefined();
});

test('what passes as it came is told of every two seconds while it goes on, and counted once', async () => {
  const clock = testClock();
  const hold = Promise.withResolvers<void>();
  const word = (content: string) => `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
  upstream.script({
    name: 'held',
    answer: () =>
      stream(
        (async function* () {
          yield word('one ');
          await hold.promise;
          for (let at = 0; at < 30; at++) yield word('word ');
          await new Promise(() => undefined);
        })(),
      ),
  });
  const leaving = new AbortController();
  const { call, text } = laneCall({ stream: true });
  const write = (bytes: Uint8Array) => {
    clock.advance(2000);
    return call.passthrough!.write(bytes);
  };
  const reported: number[] = [];
  const listening = (async () => {
    for await (const batch of provider(clock).generate({ ...call, passthrough: { ...call.passthrough!, write } }, { ...context(), signal: leaving.signal }))
      for (const event of batch)
        if (event.type === 'passed') {
          reported.push(event.tokens);
          if (reported.length === 1) hold.resolve();
          else leaving.abort(new Error('left'));
        }
  })();
  await expect(listening).rejects.toThrow('left');
  expect(text()).toContain('word');
  expect(reported.slice(0, 2)).toEqual([0, expect.toSatisfy((tokens: number) => tokens > 0)]);
  expect(reported.reduce((sum, tokens) => sum + tokens)).toBeLessThan(100);
});

/** A stream of nothing but comments, until the client leaves. */
const pinging: Behaviour = altered('pinging', ok(), (answer, { sleep }) => ({
  ...answer,
  framing: 'chunked',
  body: (async function* () {
    for (;;) {
      yield ': ping\n\n';
      await sleep(20);
    }
  })(),
}));

test.each([
  ['on the short way', laneCall({ stream: true }).call],
  ['on the long way', callOf({ stream: true })],
])('comments do not keep a target that says nothing, %s', async (_way, call) => {
  upstream.script(pinging);
  const startedAt = performance.now();
  const fault = await faultOf(eventsFrom(provider(), call, 0.4));
  expect(fault).toMatchObject({ code: 'timed-out', details: { elsewhere: true } });
  expect(performance.now() - startedAt).toBeLessThan(15_000);
  await upstream.closed(0);
});

test('what the provider sent stands in no cause', async () => {
  upstream.script(body(`<html>${secretWord}</html>`, 'application/json'));
  const fault = await faultOf(eventsFrom(provider(), callOf({})));
  expect(fault.code).toBe('upstream-failed');
  for (let error: unknown = fault; error instanceof Error; error = error.cause) expect(error.message).not.toContain(secretWord);
  expect(fault.details.cause).toBeUndefined();
});

/** Rejects every request with one of these fields, with the given message. */
const refusing = (fields: readonly string[], answer: (field: string) => object): Behaviour => {
  const good = ok();
  return always({
    name: 'refusing',
    answer(exchange) {
      const found = fields.find((field) => Object.hasOwn(exchange.request.json as object, field));
      if (found === undefined) return good.answer(exchange);
      const { answer: refused } = refusal(400, answer(found));
      return refused(exchange);
    },
  });
};
const unsupported = (field: string) => ({ message: `Unrecognized request argument supplied: ${field}` });
const fieldsAsked = () => upstream.requests.map(({ json }) => Object.keys(json as object).filter((name) => /stream_options|max_/.test(name)));

describe('a field that a provider does not take', () => {
  test('is left out where it was ours, and from then on; after an hour it is tried again', async () => {
    const clock = testClock();
    const target = provider(clock);
    upstream.script(refusing(['stream_options'], unsupported));
    await eventsFrom(target, callOf({ stream: true }));
    await eventsFrom(target, callOf({ stream: true }));
    expect(fieldsAsked()).toEqual([['stream_options'], [], []]);
    clock.advance(3_600_001);
    await eventsFrom(target, callOf({ stream: true }));
    expect(fieldsAsked().slice(3)).toEqual([['stream_options'], []]);
  });

  test("that a client wrote is the client's to leave out, and others go on as before", async () => {
    const target = provider();
    upstream.script(refusing(['stream_options_x', 'stream options'], (field) => ({ message: `Unrecognized request argument supplied: ${field}` })));
    expect(await faultOf(eventsFrom(target, callOf({ stream: true, stream_options_x: 1 })))).toMatchObject({ code: 'invalid' });
    await eventsFrom(target, callOf({ stream: true }));
    expect(fieldsAsked()).toEqual([['stream_options_x', 'stream_options'], ['stream_options']]);
  });

  test('is not left out for others where that did not help', async () => {
    const target = provider();
    upstream.script(refusing(['a stream_options'], unsupported));
    await faultOf(eventsFrom(target, callOf({ stream: true, 'a stream_options': 1 })));
    await eventsFrom(target, callOf({ stream: true }));
    expect(fieldsAsked().at(-1)).toEqual(['stream_options']);
  });

  test('stream_options, written by the client, teach nothing', async () => {
    const target = provider();
    upstream.script(refusing(['stream_options'], unsupported));
    const pending = eventsFrom(target, callOf({ stream: true, stream_options: { include_usage: true } }));
    expect(await faultOf(pending)).toMatchObject({ code: 'invalid', details: { field: 'stream_options' } });
    expect(upstream.requests).toHaveLength(1);
  });

  test.each([
    ['max_tokens', 'max_completion_tokens'],
    ['max_completion_tokens', 'max_tokens'],
  ])('%s of a client is asked for as %s where the provider knows only that', async (field, other) => {
    const target = provider();
    upstream.script(refusing([field], unsupported));
    await eventsFrom(target, callOf({ [field]: 5 }));
    await eventsFrom(target, callOf({ [field]: 5 }));
    expect(fieldsAsked()).toEqual([[field], [other], [other]]);
  });

  describe('whose value it refuses', () => {
    const unsupportedValue =
      "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', 'medium', and 'high'.";
    const refusingNone = always({
      name: 'refusing none',
      answer(exchange) {
        const refused = (exchange.request.json as { reasoning_effort?: string }).reasoning_effort === 'none';
        return (refused ? refusal(400, { message: unsupportedValue }) : ok()).answer(exchange);
      },
    });
    const thinking = (effort: 'none' | 'high'): GenerateCall => ({ ...callOf({}), reasoning: { effort }, dialect: 'anthropic-messages' });
    const efforts = () => upstream.requests.map(({ json }) => (json as { reasoning_effort?: string }).reasoning_effort);

    test('is asked with the nearest that it lists from then on, and the value of another caller arrives as it was', async () => {
      const target = provider();
      upstream.script(refusingNone);
      await eventsFrom(target, thinking('none'));
      await eventsFrom(target, thinking('high'));
      await eventsFrom(target, thinking('none'));
      expect(efforts()).toEqual(['none', 'low', 'high', 'low']);
    });

    test('keeps the name of its limit', async () => {
      const target = provider();
      upstream.script(always(refusal(400, { message: "Invalid value: 'max_tokens' must be at most 8192." })));
      expect(await faultOf(eventsFrom(target, callOf({ max_tokens: 9999 })))).toMatchObject({ code: 'invalid' });
      expect(fieldsAsked()).toEqual([['max_tokens']]);
    });
  });

  test('the limit, spelled by us, takes its other name', async () => {
    const target = provider();
    upstream.script(refusing(['max_tokens'], unsupported));
    const call: GenerateCall = { ...callOf({}), sampling: { maxTokens: 5 } };
    await eventsFrom(target, call);
    await eventsFrom(target, call);
    expect(fieldsAsked()).toEqual([['max_tokens'], ['max_completion_tokens'], ['max_completion_tokens']]);
  });
});
