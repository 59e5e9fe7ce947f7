import { setTimeout as sleep } from 'node:timers/promises';
import { chat } from './server.ts';

/** A server under test, however it runs, with the first user's key. */
export interface Served {
  readonly url: string;
  readonly key: string;
}

/** A user with keys, created over HTTP. */
export interface Member {
  readonly id: number;
  readonly keys: readonly string[];
  /** Sends a call with the first key, or with other headers. */
  ask(body: object, init?: RequestInit): Promise<Response>;
}

let made = 0;

/** Sends a request to `/server/admin`. @returns the body. @throws Error if it is refused */
export async function administrate<Answer>({ url, key }: Served, method: string, path: string, body?: object): Promise<Answer> {
  const answer = await fetch(`${url}/server/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Answer;
}

/** A new user on a plan with these limits, with `count` keys. */
export async function newMember(server: Served, limits: object = {}, keys = 1): Promise<Member> {
  const name = `member-${process.pid}-${made++}`;
  await administrate(server, 'PUT', `/plans/${name}`, limits);
  const { id } = await administrate<{ id: number }>(server, 'POST', '/users', { email: `${name}@example.org`, plan: name });
  const all: string[] = [];
  for (let at = 0; at < keys; at++) all.push((await administrate<{ key: string }>(server, 'POST', `/users/${id}/keys`, { name: `key ${at}` })).key);
  return { id, keys: all, ask: (body, init) => askWith(server, all[0]!, body, init) };
}

/** Sends a chat completion with a key. */
export function askWith({ url }: Pick<Served, 'url'>, key: string, body: object, init: RequestInit = {}): Promise<Response> {
  return fetch(url + chat, {
    method: 'POST',
    body: JSON.stringify(body),
    ...init,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
  });
}

/** A call with a fixed cost. */
export const fixed = { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }], max_tokens: 1 };

/** What a fixed call costs, in plan tokens. */
export async function fixedCost(server: Served): Promise<number> {
  const answer = await askWith(server, server.key, fixed);
  return ((await answer.json()) as { usage: { total_tokens: number } }).usage.total_tokens;
}

/** A line of the log. */
export interface Logged {
  readonly requestId: string;
  readonly step: number;
  /** ISO 8601. */
  readonly at: string;
  readonly userId: number;
  readonly app: string;
  readonly status: number;
  readonly end: string;
  readonly provenance: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  readonly cacheWrite1hTokens: number;
  readonly planTokens: number;
  readonly costUsd: number | null;
}

/** The log line of a request, as soon as it is there. */
export async function loggedAs(server: Served, requestId: string): Promise<Logged> {
  for (;;) {
    const answer = await fetch(`${server.url}/server/admin/logs/${requestId}`, { headers: { authorization: `Bearer ${server.key}` } });
    if (answer.ok) return (await answer.json()) as Logged;
    await sleep(20);
  }
}

/** All log lines, or those of a user, oldest first. */
export async function loggedBy(server: Served, userId?: number): Promise<readonly Logged[]> {
  const found: Logged[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const asked = new URLSearchParams({ limit: '200', ...(cursor ? { cursor } : {}), ...(userId === undefined ? {} : { userId: String(userId) }) });
    const page: { items: Logged[]; nextCursor: string | null } = await administrate(server, 'GET', `/logs?${asked.toString()}`);
    found.push(...page.items);
    cursor = page.nextCursor;
  }
  return found.toReversed();
}

export interface UsedBy {
  readonly requests: number;
  readonly planTokens: number;
}

/** The usage sums of each user in a period, by default this month. */
export async function usedByUser(server: Served, time: { from?: string; to?: string } = {}): Promise<ReadonlyMap<number, UsedBy>> {
  const asked = new URLSearchParams({ groupBy: 'user', ...time });
  const { items } = await administrate<{ items: (UsedBy & { user: number })[] }>(server, 'GET', `/usage?${asked.toString()}`);
  return new Map(items.map(({ user, requests, planTokens }) => [user, { requests, planTokens }]));
}
