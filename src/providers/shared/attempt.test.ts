import { expect, test } from 'vitest';
import type { Upstreams } from '#kit/upstream/pool';
import type { UpstreamRequest, UpstreamResponse } from '#kit/upstream/response';
import type { TargetContext } from '#core/context';
import { Fault } from '#core/fault';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { attempt, type Endpoint, type ProviderRequest } from './attempt.ts';
import { keyCredentials } from './credentials.ts';
import { knownQuirks } from './known-quirks.ts';

interface Quirks {
  readonly plain: true;
}

const context = {
  strict: false,
  headers: { beta: 'b' },
  signal: new AbortController().signal,
  patience: { head: 1, firstByte: 1, idle: 1 },
} as unknown as TargetContext;

/** An endpoint with two keys whose provider answers by `judge`; its requests are recorded. */
function endpointOf(judge: (request: UpstreamRequest) => number) {
  const clock = testClock();
  const sent: string[] = [];
  const post = (request: UpstreamRequest) => {
    sent.push(`${request.headers['key']} ${request.body as string}`);
    const status = judge(request);
    const body = { over() {}, beginning: () => Promise.resolve(new Uint8Array()), leave() {} };
    return Promise.resolve({ status, ok: status === 200, headers: {}, ...body } as unknown as UpstreamResponse);
  };
  const endpoint: Endpoint<string, ProviderRequest, Quirks> = {
    model: 'm',
    upstreams: { post } as unknown as Upstreams,
    credentials: keyCredentials(['k1', 'k2'], clock, (key = '') => ({ key })),
    betaHeader: 'beta',
    quirks: knownQuirks(clock),
    address: () => ({ url: new URL('https://provider.example'), path: '/' }),
    encode: (call, quirks) => ({ body: quirks ? `plain ${call}` : call, ignored: quirks ? ['a: it is plain'] : [] }),
    decodeFault: (status) => new Fault('invalid', `It says ${status}.`, { key: status === 401 }),
    learn: (fault, _call, known) => (fault.message.includes('422') && !known ? { plain: true } : undefined),
  };
  return { endpoint, sent, clock };
}

test('a key that is refused is set aside for a minute, and the next one is tried', async () => {
  const { endpoint, sent, clock } = endpointOf(({ headers }) => (headers['key'] === 'k1' ? 401 : 200));
  for (let call = 0; call < 3; call++) await attempt(endpoint, 'x', context);
  expect(sent).toEqual(['k1 x', 'k2 x', 'k2 x', 'k2 x']);
  clock.advance(60_000);
  await attempt(endpoint, 'x', context);
  await attempt(endpoint, 'x', context);
  expect(sent.slice(4)).toEqual(['k2 x', 'k1 x', 'k2 x']);
});

test('a call makes no list of its own while no key is set aside', () => {
  const { endpoint } = endpointOf(() => 200);
  const lists = [1, 2, 3, 4].map(() => endpoint.credentials.inTurn('m'));
  expect(lists[2]).toBe(lists[0]);
  expect(lists[3]).toBe(lists[1]);
});

test('where every key is refused, the last refusal is thrown', async () => {
  const { endpoint, sent } = endpointOf(() => 401);
  await expect(attempt(endpoint, 'x', context)).rejects.toThrow('It says 401.');
  expect(sent).toEqual(['k1 x', 'k2 x']);
});

test('what a refusal teaches is tried with the same key, and remembered where it helped', async () => {
  const { endpoint, sent } = endpointOf(({ body }) => (String(body).startsWith('plain') ? 200 : 422));
  const { request } = await attempt(endpoint, 'x', context);
  expect(request.ignored).toEqual(['a: it is plain']);
  expect(sent).toEqual(['k1 x', 'k1 plain x']);
  expect(endpoint.quirks.of('m')).toEqual({ plain: true });
  await attempt(endpoint, 'y', context);
  expect(sent.at(-1)).toBe('k2 plain y');
});

test('what did not help is not remembered', async () => {
  const { endpoint, sent } = endpointOf(() => 422);
  await expect(attempt(endpoint, 'x', context)).rejects.toThrow('It says 422.');
  expect(sent).toEqual(['k1 x', 'k1 plain x']);
  expect(endpoint.quirks.of('m')).toBeUndefined();
});

test('a strict client is refused before anything is sent that leaves out a field', async () => {
  const { endpoint, sent } = endpointOf(() => 422);
  const refused = attempt(endpoint, 'x', { ...context, strict: true });
  await expect(refused).rejects.toThrow('The provider does not support every field of the request: a: it is plain.');
  expect(sent).toEqual(['k1 x']);
});

test('a body that cannot be written fails the request alone, also where no credential is to be had', async () => {
  const { endpoint, sent } = endpointOf(() => 200);
  const signIn = () => new Promise<never>((_, reject) => setTimeout(() => reject(new Error('No sign-in.')), 20));
  const unwritten = {
    ...endpoint,
    credentials: { inTurn: () => [{ headers: signIn, refused: () => false }] },
    encode: () => ({ body: Promise.reject(new Error('It cannot be written.')), ignored: ['a: it is plain'] }),
  };
  const unattended: unknown[] = [];
  const notice = (error: unknown) => void unattended.push(error);
  process.on('unhandledRejection', notice);
  for (const strict of [false, true]) await expect(attempt(unwritten, 'x', { ...context, strict })).rejects.toThrow('It cannot be written.');
  await new Promise((resolve) => setTimeout(resolve, 40));
  process.off('unhandledRejection', notice);
  expect(unattended).toEqual([]);
  expect(sent).toEqual([]);
});

test('the accepted request comes back without its body, which nothing holds while the answer comes', async () => {
  const { endpoint } = endpointOf(() => 200);
  const { request } = await attempt(endpoint, 'x', context);
  expect(request).toEqual({ ignored: [] });
});
