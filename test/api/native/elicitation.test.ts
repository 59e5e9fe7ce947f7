/* What MCP servers ask the users of runs while a tool is called. */
import { describe, expect, test } from 'vitest';
import { anyPlace, onBothDatabases, type Place } from '../../support/databases.ts';
import { startAskingMcp } from '../../support/fakes/asking-mcp.ts';
import { runs } from './run-events.ts';
import { person, visited, type Person } from './visitors.ts';

const long = 120_000;

async function asked(place: Place, era: '2025' | '2026', tool: 'book' | 'peek' | 'visit' | 'pay') {
  const mcp = await startAskingMcp(era);
  const all = await visited(place, { yaml: `mcp: { approval: never }\noutbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  const server = (await ada.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url, approval: 'never' })).body['id'] as number;
  const agent = (
    await ada.ask('POST', '/server/mine/agents', {
      name: 'Worker',
      mode: 'autonomous',
      instructions: 'Work.',
      model: 'built-in',
      tools: [{ type: 'mcp', server, approval: 'never' }],
    })
  ).body['id'];
  const { body } = await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: `Call s__${tool} now.`, streaming: false });
  return { mcp, all, ada, server, agent, run: body['execution_id'] as string, body };
}

const one = async (ada: Person, run: string) => (await ada.ask('GET', `/server/mine/runs/${run}`)).body;
const answered = (ada: Person, run: string, body: object) => ada.ask('POST', `/server/mine/runs/${run}/answer`, body);
const ended = async (ada: Person, run: string) => {
  await expect.poll(async () => (await one(ada, run))['state'], { timeout: 30_000 }).toMatch(/completed|failed|cancelled/);
  return one(ada, run);
};

onBothDatabases('what a server asks during a call', ({ place }) => {
  test.each(['2025', '2026'] as const)('is a question of the run, whose answer keeps to the form (%s)', { timeout: long }, async (era) => {
    const { mcp, all, ada, run, body } = await asked(await place(), era, 'book');
    const bob = await person(all);
    expect(body).toMatchObject({ execution_status: 'waiting', waitsFor: { type: 'question', message: 'Which seats?', schema: mcp.form } });
    const { question } = body['waitsFor'] as { question: string };
    expect((await ada.ask('GET', '/server/mine/runs?state=waiting')).body['items']).toMatchObject([{ id: Number(run), state: 'waiting' }]);
    expect((await ada.ask('GET', '/server/mine/runs?state=running')).body['items']).toEqual([]);
    expect((await answered(bob, run, { question, action: 'accept' })).status).toBe(404);
    for (const [content, field] of [
      [undefined, 'content.name'],
      [{ name: 'Ada' }, 'content.seats'],
      [{ name: 'A', seats: 1 }, 'content.name'],
      [{ name: 'Ada', seats: 5 }, 'content.seats'],
      [{ name: 'Ada', seats: 1.5 }, 'content.seats'],
      [{ name: 'Ada', seats: 1, row: 'c' }, 'content.row'],
      [{ name: 'Ada', seats: 1, more: 1 }, 'content.more'],
    ] as const)
      expect(await answered(ada, run, { question, action: 'accept', content })).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining(field) as string },
      });
    const content = { name: 'Ada', seats: 2, row: 'b' };
    const both = await Promise.all([1, 2].map(() => answered(ada, run, { question, action: 'accept', content })));
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
    expect(await ended(ada, run)).toMatchObject({ state: 'completed', waitsFor: null });
    expect(mcp.begun.book).toBe(1);
    const told = await runs(ada, all.server.url).events(run);
    expect(told.filter(({ event }) => event === 'question.asked')).toHaveLength(1);
    const result = told.find(({ event }) => event === 'tool.result')!.data['data'] as { text: string };
    expect(JSON.parse(result.text.replace('answered ', ''))).toMatchObject({ action: 'accept', content });
  });

  test('of a run that is cancelled is over at once', { timeout: long }, async () => {
    const { ada, run, body } = await asked(await place(), '2025', 'book');
    const { question } = body['waitsFor'] as { question: string };
    expect((await ada.ask('POST', `/server/mine/runs/${run}/cancel`)).body).toMatchObject({ state: 'cancelled' });
    expect((await answered(ada, run, { question, action: 'decline' })).status).toBe(409);
  });

  test('is lost with the process: what only reads is called again, else the user is asked whether to', { timeout: long }, async () => {
    const where = await place();
    const { mcp, all, ada, run } = await asked(where, '2025', 'peek');
    const { agent } = { agent: (await ada.ask('GET', '/server/mine/agents')).body['items'] as { id: number; name: string }[] };
    const worker = agent.find(({ name }) => name === 'Worker')!.id;
    const { body: other } = await ada.ask('POST', '/server/execute-agent', { agent_id: worker, message: 'Call s__book now.', streaming: false });
    const booking = other['execution_id'] as string;
    await all.server.close();
    const again = await visited(where, { yaml: `mcp: { approval: never }\noutbound: { allow: ["${mcp.origin}"] }\n` });
    const adaAgain = { ...ada, ask: again.as(ada.key) };
    await expect.poll(() => mcp.begun.peek, { timeout: 30_000 }).toBe(2);
    await expect.poll(async () => (await one(adaAgain, run))['state'], { timeout: 30_000 }).toBe('waiting');
    const { question } = (await one(adaAgain, run))['waitsFor'] as { question: string };
    expect((await answered(adaAgain, run, { question, action: 'decline' })).status).toBe(200);
    expect(await ended(adaAgain, run)).toMatchObject({ state: 'completed' });
    const told = await runs(adaAgain, again.server.url).events(run);
    expect(told.filter(({ event }) => event === 'question.asked')).toHaveLength(2);
    expect(told.find(({ event }) => event === 'warning')!.data['data']).toMatchObject({ message: expect.stringContaining('called again') as string });
    await expect.poll(async () => (await one(adaAgain, booking))['waitsFor'], { timeout: 30_000 }).toMatchObject({ type: 'approval', tool: 'book' });
    expect(mcp.begun.book).toBe(1);
  });
});

describe('an MCP server', () => {
  test('asks each of many runs at once what is theirs', { timeout: long }, async () => {
    const { mcp, ada, agent } = await asked(await anyPlace(), '2025', 'book');
    const all = await Promise.all(
      [1, 2, 3].map(() => ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Call s__book now.', streaming: false })),
    );
    for (const [at, { body }] of all.entries()) {
      const { question } = body['waitsFor'] as { question: string };
      const content = { name: `Run ${at}`, seats: 1 };
      expect((await answered(ada, body['execution_id'] as string, { question, action: 'accept', content })).status).toBe(200);
    }
    for (const [at, { body }] of all.entries()) expect((await ended(ada, body['execution_id'] as string))['message']).toContain(`Run ${at}`);
    expect(mcp.begun.book).toBe(4);
  });

  test.each(['2025', '2026'] as const)('has an address visited (%s)', { timeout: long }, async (era) => {
    const { ada, all, run, body } = await asked(await anyPlace(), era, 'visit');
    expect(body['waitsFor']).toMatchObject({ type: 'question', message: 'Pay first.', url: 'https://asking.example/pay' });
    const { question } = body['waitsFor'] as { question: string };
    expect((await answered(ada, run, { question, action: 'accept' })).status).toBe(200);
    expect(await ended(ada, run)).toMatchObject({ state: 'completed' });
    const told = await runs(ada, all.server.url).events(run);
    expect(told.find(({ event }) => event === 'tool.result')!.data['data']).toMatchObject({ text: 'answered {"action":"accept"}' });
  });

  test('has an address visited without which it does not make the call', { timeout: long }, async () => {
    const { ada, all, run, body, mcp } = await asked(await anyPlace(), '2025', 'pay');
    expect(body['waitsFor']).toMatchObject({ type: 'question', message: 'Pay first.', url: 'https://asking.example/pay' });
    const { question } = body['waitsFor'] as { question: string };
    expect((await answered(ada, run, { question, action: 'accept' })).status).toBe(200);
    expect(await ended(ada, run)).toMatchObject({ state: 'completed' });
    const told = await runs(ada, all.server.url).events(run);
    expect([told.find(({ event }) => event === 'tool.result')!.data['data'], mcp.begun.pay]).toMatchObject([{ text: 'paid' }, 2]);
  });

  test.each(['2025', '2026'] as const)('has nobody to ask outside of runs, and asks nothing hostile (%s)', { timeout: long }, async (era) => {
    const { mcp, ada, run, body, server, agent } = await asked(await anyPlace(), era, 'book');
    const { question } = body['waitsFor'] as { question: string };
    await answered(ada, run, { question, action: 'decline' });
    await ended(ada, run);
    const outside = (await ada.ask('POST', `/server/mine/mcp-servers/${server}/test`, { tool: 'book' })).body;
    expect(outside).toMatchObject({ state: 'ok', result: { isError: true } });
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`f${at}`, { type: 'string' }]));
    for (const properties of [many, { deep: { type: 'object', properties: {} } }, { one: { type: 'string', enum: Array.from({ length: 1000 }, String) } }]) {
      mcp.form = { type: 'object', properties } as typeof mcp.form;
      const { body: hostile } = await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Call s__book now.', streaming: false });
      expect([Object.keys(properties)[0], hostile['execution_status']]).toEqual([Object.keys(properties)[0], 'completed']);
    }
  });
});
