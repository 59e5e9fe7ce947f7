/* Usage and logs by every filter, as lists and as files, for administrators, users and administrators of teams. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { administrate, askWith, fixed, loggedAs, newMember, type Member } from '../../support/members.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let ada: Member;
let bob: Member;
let team: number;
let adasSecond: number;
/** What a call with these headers costs. */
let cost: number;

beforeAll(async () => {
  server = await startTestServer();
  [ada, bob] = [await newMember(server, {}, 2), await newMember(server)] as const;
  team = (await administrate<{ id: number }>(server, 'POST', '/teams', { name: 'ops', plan: 'unlimited', members: [ada.id], admins: [bob.id] })).id;
  const { items } = await administrate<{ items: { id: number }[] }>(server, 'GET', `/users/${ada.id}/keys`);
  adasSecond = items[1]!.id;
  const asks = async (key: string, app: string, tags?: string) => {
    const headers: Record<string, string> = { 'x-app-name': app, ...(tags === undefined ? {} : { 'x-dragoman-tags': tags }) };
    const answer = await askWith(server, key, fixed, { headers });
    await loggedAs(server, answer.headers.get('x-request-id')!);
    cost = ((await answer.json()) as { usage: { total_tokens: number } }).usage.total_tokens;
  };
  await asks(ada.keys[0]!, '=HYPERLINK("http://evil")', 'project=blue');
  await asks(ada.keys[1]!, 'tools', 'project=red');
  await asks(bob.keys[0]!, 'tools', 'project=blue');
});
afterAll(() => server.close());

const get = (path: string, key = server.key) => fetch(server.url + path, { headers: { authorization: `Bearer ${key}` } });
const list = async <Item>(path: string, key?: string) => ((await (await get(path, key)).json()) as { items: Item[] }).items;

describe('an administrator', () => {
  test('finds usage and logs of a user at the addresses of that user, by `owner`, and nobody else does', async () => {
    expect(await list(`/server/mine/usage?owner=${ada.id}`)).toEqual([expect.objectContaining({ requests: 2, planTokens: 2 * cost })]);
    const logs = await list<{ userId: number; requestId: string }>(`/server/mine/logs?owner=${ada.id}`);
    expect(logs.map((row) => row.userId)).toEqual([ada.id, ada.id]);
    const one = `/server/mine/logs/${logs[0]!.requestId}`;
    const shown = (await (await get(`${one}?owner=${ada.id}`)).json()) as object;
    expect(shown).toMatchObject({ userId: ada.id });
    expect(shown).not.toHaveProperty('prompt'); // `bodies` is `own`
    expect((await get(one)).status).toBe(404);
    for (const path of ['/server/mine/usage', '/server/mine/logs', one])
      expect([path, (await get(`${path}?owner=${ada.id}`, bob.keys[0])).status]).toEqual([path, 404]);
    expect((await get(`/server/mine/teams/${team}/logs?owner=${ada.id}`, bob.keys[0])).status).toBe(400);
  });
});

describe('filters', () => {
  test.each([
    ['userId', () => `userId=${ada.id}`, 2],
    ['keyId', () => `keyId=${adasSecond}`, 1],
    ['team', () => `team=${team}`, 2],
    ['app', () => 'app=tools', 2],
    ['face', () => 'face=chatcompat', 3],
    ['provider', () => 'provider=built-in', 3],
    ['a provider that nobody asked', () => 'provider=elsewhere', 0],
    ['region', () => 'region=us-east1', 0],
    ['model', () => 'model=built-in', 3],
    ['status', () => 'status=200', 3],
    ['end', () => 'end=completed', 3],
    ['another end', () => 'end=length', 0],
    ['tag', () => 'tag=project:blue', 2],
    ['several', () => `tag=project:blue&userId=${bob.id}&app=tools`, 1],
    ['a time that is over', () => 'from=2020-01-01&to=2020-02-01', 0],
    ['a time around now', () => `from=${new Date(Date.now() - 60_000).toISOString()}&to=${new Date(Date.now() + 60_000).toISOString()}`, 3],
  ])('%s narrows logs and usage alike', async (_what, query, many) => {
    expect(await list(`/server/admin/logs?${query()}`)).toHaveLength(many);
    expect(await list(`/server/admin/usage?${query()}`)).toEqual([expect.objectContaining({ requests: many, planTokens: many * cost })]);
  });

  test.each([
    ['userId=0', 'userId'],
    ['team=x', 'team'],
    ['tag=nothing', 'tag'],
    ['end=error', 'end'],
    ['face=nope', /face.*chatcompat.*mcp/],
    ['face=admin', 'face'],
    ['from=yesterday', 'from'],
    ['format=xml', 'format'],
    ['nobody=1', 'nobody'],
  ])('%s is 400 naming %s', async (query, field) => {
    for (const path of ['usage', 'logs']) {
      const answer = await get(`/server/admin/${path}?${query}`);
      expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([400, expect.stringMatching(field)]);
    }
  });
});

describe('groups', () => {
  test('by team a row stands under each team that it was charged to, others under none; the sums of other groups are those of all', async () => {
    expect(await list('/server/admin/usage?groupBy=team')).toEqual([
      expect.objectContaining({ team, requests: 2, planTokens: 2 * cost }),
      expect.objectContaining({ team: null, requests: 1, planTokens: cost }),
    ]);
    for (const word of ['hour', 'provider', 'balance', 'user', 'key', 'app', 'tag:project', 'day']) {
      const items = await list<{ requests: number; planTokens: number }>(`/server/admin/usage?groupBy=${word}`);
      expect([word, items.reduce((sum, { requests }) => sum + requests, 0)]).toEqual([word, 3]);
    }
    expect(await list('/server/admin/usage?groupBy=provider,balance')).toEqual([
      expect.objectContaining({ provider: 'built-in', balance: 'inference', requests: 3 }),
    ]);
  });

  test.each([
    ['UTC', 0],
    ['Asia/Kolkata', 5.5],
    ['America/New_York', undefined],
  ])('days and hours are cut in the time zone %s', async (tz, offset) => {
    const at = Date.parse((await list<{ at: string }>('/server/admin/logs?limit=1'))[0]!.at);
    const parts = Object.fromEntries(
      new Intl.DateTimeFormat('en-CA', { timeZone: tz, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', hourCycle: 'h23' })
        .formatToParts(at)
        .map(({ type, value }) => [type, value]),
    );
    const day = `${parts['year']}-${parts['month']}-${parts['day']}`;
    if (offset !== undefined) expect(day).toBe(new Date(at + offset * 3_600_000).toISOString().slice(0, 10));
    const found = await list<{ day: string; hour: string }>(`/server/admin/usage?groupBy=day,hour&tz=${encodeURIComponent(tz)}&from=2020-01-01&to=2090-01-01`);
    expect(found).toContainEqual(expect.objectContaining({ day, hour: `${day}T${parts['hour']}:00` }));
  });

  test('from alone in a later month finds nothing yet', async () => {
    expect(await list('/server/admin/usage?from=2090-01-01&groupBy=model')).toEqual([]);
    for (const path of ['/server/admin/usage?from=2090-01-01', '/server/mine/usage?from=2090-01-01&to=2090-01-01'])
      expect(await list(path)).toEqual([expect.objectContaining({ requests: 0, planTokens: 0 })]);
  });

  test.each(['Mars/Olympus', '+05:30', 'IST', 'bst', "UTC'; drop table usage", 'x'.repeat(65)])('the time zone %s is 400 naming tz', async (tz) => {
    const answer = await get(`/server/admin/usage?groupBy=day&tz=${encodeURIComponent(tz)}`);
    expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([400, expect.stringContaining('tz')]);
  });

  test('times of the first token and in all are there as half and as 95 per cent', async () => {
    const [item] = await list<Record<string, number>>('/server/admin/usage');
    const rows = await list<{ totalMs: number }>('/server/admin/logs');
    const longest = Math.max(...rows.map(({ totalMs }) => totalMs));
    expect(item!['totalP50Ms']).toBeLessThanOrEqual(item!['totalP95Ms']!);
    expect(item!['totalP95Ms']).toBeGreaterThan(Math.max(1, longest) * 0.9);
    expect(item!['totalP95Ms']).toBeLessThan(Math.max(1, longest) * 1.1);
    expect(item!['firstTokenP50Ms']).toBeGreaterThan(0);
  });
});

test('times in the log of requests have at most three decimals', async () => {
  const rows = await list<{ queueMs: number; firstTokenMs: number; totalMs: number }>('/server/admin/logs');
  expect(rows).not.toHaveLength(0);
  for (const time of rows.flatMap(({ queueMs, firstTokenMs, totalMs }) => [queueMs, firstTokenMs, totalMs])) expect(String(time)).toMatch(/^\d+(\.\d{1,3})?$/);
});

describe('files', () => {
  test('the log as CSV has a head and a line for each row, and no formula', async () => {
    const answer = await get('/server/admin/logs?format=csv');
    expect([answer.headers.get('content-type'), answer.headers.get('content-disposition')]).toEqual([
      'text/csv; charset=utf-8',
      'attachment; filename="logs.csv"',
    ]);
    const [head, ...lines] = (await answer.text()).trimEnd().split('\r\n');
    expect(head).toMatch(/^requestId,step,at,userId,teamIds,keyId,app,face,tags,/);
    expect(lines).toHaveLength(3);
    expect(lines.at(-1)).toContain(`"'=HYPERLINK(""http://evil"")"`);
  });

  test('the log as JSON lines is the log', async () => {
    const text = await (await get('/server/admin/logs?format=jsonl&app=tools')).text();
    const found = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(found).toEqual(await list('/server/admin/logs?app=tools'));
  });

  test('usage as a file has the groups in front', async () => {
    const lines = (await (await get('/server/admin/usage?groupBy=user,app&format=csv')).text()).trimEnd().split('\r\n');
    expect(lines[0]).toMatch(/^user,app,requests,inputTokens,cachedTokens,/);
    expect(lines).toHaveLength(4);
  });
});

describe('whose', () => {
  test('under mine a user sees what is theirs and nothing else, whatever they ask for', async () => {
    const [key] = bob.keys;
    expect(await list<{ userId: number }>('/server/mine/logs', key)).toEqual([expect.objectContaining({ userId: bob.id })]);
    expect(await list('/server/mine/usage?groupBy=user', key)).toEqual([expect.objectContaining({ user: bob.id, requests: 1 })]);
    expect((await get(`/server/mine/logs?userId=${ada.id}`, key)).status).toBe(400);
    const [hers] = await list<{ requestId: string }>('/server/mine/logs', ada.keys[0]);
    const { error_ref: _, ...unknown } = (await (await get('/server/mine/logs/req_unknown', key)).json()) as Record<string, unknown>;
    const { error_ref: _other, ...another } = (await (await get(`/server/mine/logs/${hers!.requestId}`, key)).json()) as Record<string, unknown>;
    expect(another).toEqual(unknown);
    expect((await get(`/server/mine/logs/${hers!.requestId}`, ada.keys[0])).status).toBe(200);
    expect(await (await get('/server/mine/logs?format=jsonl', key)).text()).not.toContain(hers!.requestId);
  });

  test('a request without tags and further steps has neither, and says so', async () => {
    const answer = await askWith(server, bob.keys[0]!, fixed, { headers: { 'x-app-name': 'untagged' } });
    const id = answer.headers.get('x-request-id')!;
    await loggedAs(server, id);
    for (const [place, key] of [
      ['admin', server.key],
      ['mine', bob.keys[0]!],
    ] as const) {
      expect(await list(`/server/${place}/logs?app=untagged`, key)).toEqual([expect.objectContaining({ requestId: id, tags: {} })]);
      expect(await (await get(`/server/${place}/logs/${id}`, key)).json()).toMatchObject({ requestId: id, tags: {}, steps: [] });
    }
  });

  test('an administrator of a team sees what was charged to it; a member does not', async () => {
    const path = `/server/mine/teams/${team}`;
    expect(await list(`${path}/logs`, bob.keys[0])).toHaveLength(2);
    expect(await list(`${path}/usage?groupBy=user,team`, bob.keys[0])).toEqual([expect.objectContaining({ user: ada.id, team, requests: 2 })]);
    for (const end of ['logs', 'usage']) expect((await get(`${path}/${end}`, ada.keys[0])).status).toBe(404);
  });

  test('a key with scopes sees neither', async () => {
    const { key } = await administrate<{ key: string }>(server, 'POST', `/users/${bob.id}/keys`, { name: 'scoped', scopes: ['query', 'passthrough'] });
    for (const end of ['logs', 'usage']) expect((await get(`/server/mine/${end}`, key)).status).toBe(403);
  });
});
