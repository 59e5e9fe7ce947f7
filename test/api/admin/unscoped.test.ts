import { afterAll, beforeAll, expect, test } from 'vitest';
import { ByteBudget } from '#kit/memory/byte-budget';
import { systemClock } from '#kit/async/clock';
import type { Route } from '#http/route';
import { nowhere } from '../../support/surroundings.ts';
import { serve, type Listening } from '#http/server';
import type { Caller } from '#core/context';

const callers: Readonly<Record<string, Partial<Caller>>> = {
  'a key that is not narrowed': {},
  'one for some models': { models: ['m'] },
  'one that expires': { expiresAt: 1 },
  'one with limits': { keyLimits: { monthlyUsd: 5 } },
  'one with scopes': { scopes: ['admin', 'passthrough'] },
};
const caller: Caller = { userId: 1, email: 'a@example.org', role: 'admin', plan: 'p', teamIds: [], keyId: 1, keyName: 'k' };
const common: Omit<Route, 'path'> = { method: 'GET', scope: 'unscoped', owner: 'caller', summary: '', answer: () => ({}) };

let listening: Listening;
beforeAll(async () => {
  const routes: Route[] = [
    { ...common, path: '/own' },
    { ...common, path: '/keys', givesRights: true },
  ];
  listening = await serve(
    {
      faces: [{ name: 'own', roots: [''], routes, refusal: ({ message }) => ({ message }) }],
      identify: (name) => ({ ...caller, ...callers[name.replaceAll('-', ' ')] }),
      limits: () => ({ bodyBytes: 1, fileBytes: 1, bodyIdleSeconds: 1, headerSeconds: 1, maxConnections: 10 }),
      keyInQuery: () => false,
      surroundings: () => nowhere,
      clock: systemClock,
      once: (_asked, _key, run) => run(),
      budget: new ByteBudget({ total: 1, each: 1 }),
      uploads: { hold: () => Promise.reject(new Error('nobody sends files')) },
      done: () => {},
    },
    { host: '127.0.0.1', port: 0 },
  );
});
afterAll(() => listening.close(0));

test.each([
  ['a key that is not narrowed', 200, 200],
  ['one for some models', 200, 403],
  ['one that expires', 200, 403],
  ['one with limits', 200, 403],
  ['one with scopes', 403, 403],
])('%s is %i at an unscoped address, and %i at one that gives rights', async (name, own, giving) => {
  const asked = async (path: string) => (await fetch(listening.url + path, { headers: { 'x-access-tokens': name.replaceAll(' ', '-') } })).status;
  expect([await asked('/own'), await asked('/keys')]).toEqual([own, giving]);
});
