import { beforeAll, describe, expect, test } from 'vitest';
import { always, googleVectors, tooMany, vectors } from '../support/fakes/upstream/index.ts';
import { chat } from '../support/server.ts';
import { administrate, newMember } from '../support/members.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** A plan that names a list of regions: nobody on it is ever answered from elsewhere. */
const regions = '[us-central1, us-east1, us-south1, us-west1]';
const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  platform: { dialect: gemini, kind: vertex, project: p, baseUrl: "${url}/{region}/v1", credentials: { accessToken: t }, regions: ${regions}, residency: { south: [us-south1, us-west1], west: [us-west1, us-east1], alone: [us-central1] } }
  anywhere: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  gemini-2.5-flash: { targets: [{ provider: anywhere }, { provider: platform }] }
  gemini-2.0-flash: { targets: [{ provider: platform }], residency: alone }
  gpt-x: { targets: [{ provider: anywhere }] }
  vectors: { kind: embedding, targets: [{ provider: anywhere }, { provider: platform }] }
  "*": { targets: [{ provider: anywhere }] }
defaults: { chat: gemini-2.5-flash, embedding: text-embedding-3-small }
plans:
  free: {}
  south: { residency: south }
newUsers: { plan: free }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
}));

const generate = (model: string) => ({ path: `/server/gencompat/v1beta/models/${model}:generateContent`, body: { contents: [{ parts: [{ text: 'hi' }] }] } });
const completion = (model: string) => ({ path: chat, body: { model, messages: [{ role: 'user', content: 'hi' }] } });
const embedding = (model: string) => ({ path: '/server/chatcompat/v1/embeddings', body: { model, input: 'hi' } });
const response = (model: string) => ({ path: '/server/chatcompat/v1/responses', body: { model, input: 'hi' } });
const message = (model: string) => ({ path: '/server/messages/v1/messages', body: { model, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] } });

const places = () => upstream.requests.map(({ region, path }) => region ?? path);
const ask = async (key: string, { path, body }: { readonly path: string; readonly body: object }) => {
  const answer = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'x-access-tokens': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
};

async function memberOn(plan: string): Promise<string> {
  const member = await newMember(server);
  await administrate(server, 'PATCH', `/users/${member.id}`, { plan });
  return member.keys[0]!;
}

describe.each(['of the settings file', 'of the database'])('a plan %s with a residency', (where) => {
  let key: string;
  beforeAll(async () => {
    if (where === 'of the database') await administrate(server, 'PUT', '/plans/made-south', { residency: 'south' });
    key = await memberOn(where === 'of the database' ? 'made-south' : 'south');
  });

  test.each([
    ['content generation', generate('gemini-2.5-flash')],
    ['chat completions', completion('gemini-2.5-flash')],
    ['responses', response('gemini-2.5-flash')],
    ['messages', message('gemini-2.5-flash')],
    ['embeddings', embedding('vectors')],
  ])('asks no region outside its list for %s, and no provider without regions', async (_, asked) => {
    upstream.script(always(tooMany()));
    expect((await ask(key, asked)).status).toBe(429);
    expect(places()).toEqual(['us-south1', 'us-west1']);
    upstream.reset();
    upstream.script(always(vectors()), always(googleVectors()));
    expect((await ask(key, asked)).status).toBe(200);
    expect(places()).toEqual(['us-south1']);
  });

  test.each([
    ['a model that can only be asked elsewhere', completion('gpt-x'), 404],
    ['a name that is passed on elsewhere', completion('any-name'), 404],
    ['a model whose own list has none of these regions', completion('gemini-2.0-flash'), 404],
    ['the default engine of embeddings elsewhere', embedding('nobody'), 404],
    ['the built-in model, which sends nothing anywhere', completion('built-in'), 200],
  ])('%s', async (_, asked, status) => {
    expect((await ask(key, asked)).status).toBe(status);
    expect(places()).toEqual([]);
  });

  test('falls back within a tier only to models within the list', async () => {
    expect((await ask(key, generate('gemini-1.5-flash'))).status).toBe(200);
    expect(places()).toEqual(['us-south1']);
  });

  test('shows no model that is unavailable', async () => {
    const list = async (headers: Record<string, string>) =>
      ((await (await fetch(`${server.url}/server/chatcompat/v1/models`, { headers })).json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    const all = await list({ 'x-access-tokens': server.key });
    expect(all).toEqual(expect.arrayContaining(['gpt-x', 'gemini-2.0-flash']));
    expect((await list({ 'x-access-tokens': key })).toSorted()).toEqual(['built-in', 'built-in-embedding', 'built-in-speech', 'gemini-2.5-flash', 'vectors']);
  });
});

test('a user of a plan without residency is answered from everywhere', async () => {
  expect((await ask(await memberOn('free'), generate('gemini-2.5-flash'))).status).toBe(200);
  expect(places()).toEqual(['/v1/chat/completions']);
});

test('a change of the plan applies to the very next call', async () => {
  await administrate(server, 'PUT', '/plans/moving', {});
  const key = await memberOn('moving');
  await ask(key, generate('gemini-2.5-flash'));
  await administrate(server, 'PUT', '/plans/moving', { residency: 'west' });
  await ask(key, generate('gemini-2.5-flash'));
  expect(places()).toEqual(['/v1/chat/completions', 'us-east1']);
});

test('the plan of a team binds its members like their own: only regions in both lists are asked', async () => {
  await administrate(server, 'PUT', '/plans/west', { residency: 'west' });
  const member = await newMember(server);
  await administrate(server, 'PATCH', `/users/${member.id}`, { plan: 'south' });
  await administrate(server, 'POST', '/teams', { name: 'western', plan: 'west', members: [member.id] });
  expect((await ask(member.keys[0]!, generate('gemini-2.5-flash'))).status).toBe(200);
  expect(places()).toEqual(['us-west1']);
});

test('the list of plans shows the residency', async () => {
  await administrate(server, 'PUT', '/plans/told', { residency: 'west' });
  const { items } = await administrate<{ items: object[] }>(server, 'GET', '/plans');
  expect(items).toEqual(
    expect.arrayContaining([
      { name: 'south', source: 'settings', residency: 'south' },
      { name: 'told', source: 'database', residency: 'west' },
    ]),
  );
});

test.each(['nowhere', '__proto__', '', 5, null])('a list %j that no provider has is refused, naming the field', async (residency) => {
  const answer = await server.ask('/server/admin/plans/x', { residency }, { method: 'PUT' });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('residency')]);
});
