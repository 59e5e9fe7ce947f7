/* Deep agents at the front door: begun by a question, followed, answered, cancelled, and gone on with after the server has died. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { anyPlace, onBothDatabases } from '../../support/databases.ts';
import { hang, ok, startUpstream, type Behaviour, type Upstream } from '../../support/fakes/upstream/index.ts';
import { openSite, outsideOf, publicAddress, type Site } from '../../support/fakes/web.ts';
import { proves } from '../../support/proves.ts';
import { startProcess } from '../../support/server-process.ts';
import { newDataset } from '../datasets/people.ts';
import { person, visited, visitorsOf, type Answer, type Person } from './visitors.ts';

const long = 300_000;

interface Told {
  readonly event: string;
  readonly data: Record<string, unknown>;
  readonly seq?: number;
  readonly run: string;
  readonly place: string;
  readonly timestamp: string;
}

/** The events of a run until its stream ends, or until one of this name has come. */
async function followed(
  url: string,
  { key }: Pick<Person, 'key'>,
  path: string,
  more: { readonly after?: number; readonly until?: string; readonly accept?: string } = {},
) {
  const body = path.startsWith('/server/mine') ? {} : { method: 'POST', body: JSON.stringify({ deep_agent_id: Number(path) }) };
  const left = new AbortController();
  const answer = await fetch(url + (path.startsWith('/') ? path : '/server/get-deep-agent'), {
    ...body,
    signal: left.signal,
    headers: {
      'x-access-tokens': key,
      'content-type': 'application/json',
      accept: more.accept ?? 'text/event-stream',
      ...(more.after === undefined ? {} : { 'last-event-id': String(more.after) }),
    },
  });
  const told: Told[] = [];
  const frames: string[] = [];
  let text = '';
  for await (const piece of answer.body!) {
    text += Buffer.from(piece).toString();
    const parts = text.split('\n\n');
    text = parts.pop()!;
    for (const frame of parts) {
      frames.push(frame);
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data !== undefined) told.push(JSON.parse(data) as Told);
    }
    if (more.until !== undefined && told.some(({ event }) => event === more.until)) break;
  }
  left.abort();
  return { status: answer.status, type: answer.headers.get('content-type'), told, frames, rest: text };
}

const idOf = ({ body }: Answer): number => (body['added_obj'] as { deep_agent_id: number }).deep_agent_id;
const named = (told: readonly Told[], name: string) => told.filter(({ event }) => event === name);

const facts = {
  'mill.txt': 'The mill of Nuuk was built by Mara Quill.',
  'fire.txt': 'The harbour fire of Nuuk happened in the year 1720.',
  'heron.txt': 'The herons of Nuuk sleep in the old lighthouse.',
};
const threeQuestions = 'Who built the mill of Nuuk? When did the harbour fire of Nuuk happen? Where do the herons of Nuuk sleep?';

/** A dataset with what can be found out. */
async function town(who: Person): Promise<string> {
  const dataset = await newDataset(who, 'town');
  for (const [context, content] of Object.entries(facts)) {
    const { status } = await who.ask('POST', '/server/train', { content, context, force_dataset: dataset });
    expect(status).toBe(200);
  }
  return dataset;
}

let upstream: Upstream;
let engine: Site;
let web: Site;
beforeAll(async () => {
  upstream = await startUpstream();
  engine = await openSite('127.0.0.1');
  web = await openSite('127.0.0.2');
});
afterAll(() => Promise.all([upstream, engine, web].map((one) => one.close())));

/** What a scripted model says to each kind of call of a run. */
type Script = Partial<Record<'clarify' | 'plan' | 'research' | 'review' | 'report', string | Behaviour>>;

const kinds = {
  'can be researched': 'clarify',
  'Plan the research': 'plan',
  'one of several researchers': 'research',
  'You lead research': 'review',
  'Write the answer': 'report',
} as const;
const usual = { clarify: 'READY', plan: '1. Who built the mill of Nuuk?', research: 'Mara Quill [1].', review: 'DONE', report: 'Mara Quill built it [1].' };

/** Answers every call of a run, as its instructions tell what it is. @returns the kinds of calls that came */
function runsOn(script: Script = {}): readonly string[] {
  const asked: string[] = [];
  upstream.reset();
  upstream.script({
    name: 'run',
    uses: Infinity,
    answer(exchange) {
      const told = JSON.stringify(exchange.request.json);
      const kind = Object.entries(kinds).find(([words]) => told.includes(words))?.[1] ?? 'report';
      asked.push(kind);
      const said = { ...usual, ...script }[kind];
      return (typeof said === 'string' ? ok({ text: said }) : said).answer(exchange);
    },
  });
  return asked;
}

const textOf = ({ json }: { readonly json: unknown }) => JSON.stringify(json ?? '');

/** The call that writes the report. */
const reportAsked = () => upstream.until((requests) => requests.find((one) => textOf(one).includes('Write the answer')), 20_000);

const searching = () => `search: { engine: searxng, url: "http://127.0.0.1:${engine.port}" }\n`;

onBothDatabases('a deep agent', ({ place }) => {
  test(
    proves('server.get-deep-agent', 'on the built-in model ends offline within a minute, with researchers at the same time and citations that resolve'),
    { timeout: long },
    async () => {
      const outside = outsideOf(() => [publicAddress], '127.0.0.2');
      const all = await visited(await place(), { yaml: searching(), outside });
      const ada = await person(all);
      const dataset = await town(ada);
      const url = `http://news.example:${web.port}/ferry`;
      engine.answer(
        (_, response) =>
          void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results: [{ url, title: 'Ferries', content: 'Boats.' }] })),
      );
      web.answer((_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>The ferry of Nuuk leaves at noon on Sundays.</p>'));

      const began = performance.now();
      const asked = await ada.ask('POST', '/server/query', { message: threeQuestions, mode: 'deep_agent', dataset, model: 'built-in' });
      expect(asked).toMatchObject({
        status: 200,
        body: {
          response: 'OK',
          type: 'completion',
          message: expect.stringContaining('get-deep-agent') as string,
          added_obj: { deep_agent_id: expect.any(Number) as number },
        },
      });
      const id = String(idOf(asked));
      const { told, type, frames } = await followed(all.server.url, ada, id);
      expect(performance.now() - began).toBeLessThan(240_000); // a minute, on a machine with nothing else to do
      expect(type).toContain('text/event-stream');
      expect(told.map(({ seq }) => seq)).toEqual(told.map((_, at) => at + 1));
      expect(frames[0]).toMatch(/^id: 1\nevent: run\.started\ndata: \{/);
      expect(told[0]).toMatchObject({
        event: 'run.started',
        run: Number(id),
        seq: 1,
        place: 'main',
        data: { kind: 'deep_agent', agentId: null, version: null, message: threeQuestions },
      });

      const end = told.at(-1)!;
      expect(end.event).toBe('run.completed');
      expect(
        named(told, 'message.delta')
          .map(({ data }) => data['delta'])
          .join(''),
      ).toBe(end.data['message']);
      const citations = end.data['citations'] as { index: number; chunk_id: number; text: string; at: [number, number][] }[];
      expect(citations.length).toBeGreaterThan(0);
      expect(named(told, 'citation').map(({ data }) => data)).toEqual(citations);
      for (const { chunk_id: chunk, index, at } of citations) {
        expect(await ada.ask('GET', `/server/mine/passages/${chunk}`)).toMatchObject({ status: 200, body: { dataset } });
        for (const [from, to] of at)
          expect(
            Array.from(end.data['message'] as string)
              .slice(from, to)
              .join(''),
          ).toContain(String(index));
      }
      const agents = told.filter(({ event }) => event.startsWith('agent.')).map(({ event }) => event);
      expect(agents.filter((event) => event === 'agent.started')).toHaveLength(3);
      expect(agents.slice(0, 3)).toEqual(['agent.started', 'agent.started', 'agent.started']);
      expect(new Set(told.map(({ place: where }) => where))).toEqual(new Set(['main', ...[1, 2, 3].map((at) => `main/researcher-${at}`)]));

      const again = await followed(all.server.url, ada, `/server/mine/runs/${id}/events`);
      expect(again.told).toEqual(told);
      const rest = await followed(all.server.url, ada, id, { after: 5 });
      expect(rest.told).toEqual(told.slice(5));
      for (const accept of ['text/plain', '*/*']) {
        const plain = await followed(all.server.url, ada, id, { accept });
        expect(plain.type).toContain('text/plain');
        expect(plain.rest.split('@|@sep@|@').map((one) => JSON.parse(one) as Told)).toEqual(told);
      }
      expect(await ada.ask('GET', `/server/mine/runs/${id}`)).toMatchObject({ body: { kind: 'deep_agent', state: 'completed', message: end.data['message'] } });
    },
  );

  test('on the built-in model begins its report with what its instructions tell it to say exactly, and nothing of our own', { timeout: long }, async () => {
    const all = await visited(await place());
    const ada = await person(all);
    const dataset = await town(ada);
    const more = { dataset, model: 'built-in', system_prompt: 'Say exactly: PONG' };
    const asked = await ada.ask('POST', '/server/query', { message: threeQuestions, mode: 'deep_agent', ...more });
    const { told } = await followed(all.server.url, ada, String(idOf(asked)));
    const { event, data } = told.at(-1)!;
    expect([event, data['message']]).toEqual(['run.completed', expect.stringMatching(/^PONG(?![^]*(?:Write the answer|Today is))/)]);
  });

  test('another’s run is not there, in any of the ways to it; a vote against one’s own leads to it', { timeout: long }, async () => {
    runsOn();
    const all = await visited(await place(), { upstream: upstream.url });
    const [ada, bob] = [await person(all), await person(all)];
    const ask = (who: Person, more: object = {}) => who.ask('POST', '/server/query', { message: 'Who?', mode: 'deep_agent', model: 'gpt-4o-mini', ...more });
    const asked = await ask(ada);
    const id = idOf(asked);
    await followed(all.server.url, ada, String(id));
    const { uuid } = asked.body;
    expect([(await bob.ask('POST', '/server/vote-down', { uuid })).status, (await ada.ask('POST', '/server/vote-down', { uuid })).status]).toEqual([404, 200]);
    const { requestId } = (await ada.ask('GET', `/server/mine/runs/${id}`)).body;
    expect((await all.admin('GET', '/server/admin/votes')).body['items']).toMatchObject([{ uuid, requestId, message: 'Who?' }]);
    const nobodys = id === 100_000_000_000_001 ? id + 1 : 100_000_000_000_001;
    const seen = async (who: Person, one: number) => {
      const answers = [
        await who.ask('POST', '/server/get-deep-agent', { deep_agent_id: one }),
        await who.ask('GET', `/server/get-deep-agent?deep_agent_id=${one}`),
        await who.ask('GET', `/server/mine/runs/${one}`),
        await who.ask('GET', `/server/mine/runs/${one}/events`),
        await who.ask('POST', `/server/mine/runs/${one}/cancel`),
        await ask(who, { deep_agent_id: one }),
        await ask(who, { prior_deep_agent_ids: [one] }),
      ];
      return answers.map(({ status, body: { error_ref: _, ...body } }) => ({ status, body }));
    };
    const notThere = await seen(bob, nobodys);
    expect(notThere.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404, 404, 404]);
    expect(await seen(bob, id)).toEqual(notThere);
    expect((await ask(ada, { prior_deep_agent_ids: [id] })).status).toBe(200);
  });
});

describe('a deep agent on a scripted model', () => {
  const open = async (more: object = {}) => {
    const all = await visited(await anyPlace(), { upstream: upstream.url, ...more });
    const ada = await person(all);
    const ask = (fields: object = {}, who = ada) =>
      who.ask('POST', '/server/query', { message: 'Who built the mill of Nuuk?', mode: 'deep_agent', model: 'gpt-4o-mini', ...fields });
    const follow = (id: number, options?: Parameters<typeof followed>[3]) => followed(all.server.url, ada, String(id), options);
    return { all, ada, ask, follow };
  };

  test('asks the user where it has to, and goes on with the answer, which may come as a question too', { timeout: long }, async () => {
    const asked = runsOn({ clarify: 'QUESTION: Which Nuuk?' });
    const { ada, ask, follow } = await open();
    for (const how of ['run', 'query'] as const) {
      const id = idOf(await ask());
      const { told } = await follow(id, { until: 'question.asked' });
      expect(told.at(-1)).toMatchObject({ event: 'question.asked', data: { question: 'clarify', message: 'Which Nuuk?', schema: { type: 'object' } } });
      await expect.poll(async () => (await ada.ask('GET', `/server/mine/runs/${id}`)).body['state']).toBe('waiting');
      const answer = { question: 'clarify', action: 'accept', content: { answer: 'That in Greenland.' } };
      if (how === 'run') expect((await ada.ask('POST', `/server/mine/runs/${id}/answer`, answer)).status).toBe(200);
      else expect(idOf(await ask({ message: 'That in Greenland.', deep_agent_id: id }))).toBe(id);
      const rest = await follow(id);
      expect(rest.told.at(-1)!.event).toBe('run.completed');
      expect((await ask({ message: 'again', deep_agent_id: id })).status).toBe(200); // it is over: its report is read first
    }
    const plans = upstream.requests.map(textOf).filter((text) => text.includes('Plan the research'));
    expect(plans.filter((plan) => plan.includes('That in Greenland.')).length).toBeGreaterThanOrEqual(2);
    expect(asked.filter((kind) => kind === 'clarify').length).toBeGreaterThanOrEqual(2);
    await expect.poll(() => upstream.requests.some((one) => textOf(one).includes('The report of an earlier run:\\n\\nMara Quill built it'))).toBe(true);
  });

  test('whose question waits is not answered by a strict request that names what is not there', { timeout: long }, async () => {
    runsOn({ clarify: 'QUESTION: Which Nuuk?' });
    const { ada, ask, follow } = await open();
    const id = idOf(await ask());
    await follow(id, { until: 'question.asked' });
    const waits = async () => (await ada.ask('GET', `/server/mine/runs/${id}`)).body['state'];
    await expect.poll(waits).toBe('waiting');
    const answer = { message: 'That in Greenland.', mode: 'deep_agent', model: 'gpt-4o-mini', deep_agent_id: id };
    for (const more of [{ enabled_mcp_tools: ['none'] }, { live: 1 }]) {
      const { status } = await ada.ask('POST', '/server/query', { ...answer, ...more }, { headers: { 'x-dragoman-strict': 'true' } });
      expect([more, status, await waits()]).toEqual([more, 400, 'waiting']);
    }
    const answered = await ask({ ...answer, live: 1 });
    expect([answered.status, answered.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringMatching(/^live: no search engine/)]);
    expect((await ask({ live: 1, limit_references: 0 })).headers.get('x-dragoman-warnings')).not.toContain('search engine');
  });

  test('that is cancelled ends at once, with the call of the model that it waits for', { timeout: long }, async () => {
    runsOn({ report: hang() });
    const { ada, ask, follow } = await open();
    const id = idOf(await ask());
    const following = follow(id);
    const hanging = await reportAsked();
    const began = performance.now();
    expect(await ada.ask('POST', `/server/mine/runs/${id}/cancel`)).toMatchObject({ status: 200, body: { state: 'cancelled' } });
    await upstream.closed(hanging.id);
    expect(performance.now() - began).toBeLessThan(10_000);
    const { told } = await following;
    expect(told.at(-1)).toMatchObject({ event: 'run.cancelled' });
    expect(named(told, 'run.completed')).toEqual([]);
  });

  test('is not begun where there is nothing left to pay it with', { timeout: long }, async () => {
    runsOn();
    const { all, ask } = await open();
    await all.admin('PUT', '/server/admin/plans/tiny', { monthlyTokens: 0 });
    const poor = await person(all, { plan: 'tiny' });
    expect((await ask({}, poor)).status).toBe(429);
    expect(upstream.requests).toHaveLength(0);
    expect((await poor.ask('GET', '/server/mine/runs')).body['items']).toEqual([]);
  });

  test('that runs out of quota fails, and says so', { timeout: long }, async () => {
    runsOn({ plan: ok({ text: '1. One?', usage: { input: 30_000, output: 10 } }) });
    const { all, ask } = await open();
    await all.admin('PUT', '/server/admin/plans/small', { monthlyTokens: 20_000 });
    const poor = await person(all, { plan: 'small' });
    const id = idOf(await ask({}, poor));
    const { told } = await followed(all.server.url, poor, String(id));
    expect(told.at(-1)).toMatchObject({ event: 'run.failed', data: { message: expect.stringMatching(/quota|tokens/i) as string, citations: [] } });
  });

  test.each([
    [{ tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools'],
    [{ tools_to_execute: ['x'] }, 'tools_to_execute'],
    [{ model: 'nobody' }, 'model'],
    [{ deep_agent_id: 'x' }, 'deep_agent_id'],
    [{ prior_deep_agent_ids: [0] }, 'prior_deep_agent_ids'],
    [
      {
        message: [
          { user: 'me', message: 'x' },
          { user: 'gpt', message: 'y' },
        ],
      },
      'message',
    ],
    [{ mode: 'deep' }, 'mode'],
  ])('with %j is refused, naming %s', { timeout: long }, async (fields, field) => {
    const { ask } = await open();
    const answer = await ask(fields);
    expect([answer.status, answer.body['error']]).toEqual([400, expect.stringContaining(field)]);
  });

  test('needs the scope agent_builder, finds no dataset of another, and is named by an integer', { timeout: long }, async () => {
    runsOn();
    const { all, ada, ask } = await open();
    const narrow = await person(all, {}, { scopes: ['query'] });
    expect(await ask({}, narrow)).toMatchObject({ status: 403, body: { error: expect.stringContaining('agent_builder') as string } });
    expect((await narrow.ask('POST', '/server/get-deep-agent', { deep_agent_id: 1 })).status).toBe(403);
    expect((await ask({ dataset: 'user_custom_9_payroll_content' })).status).toBe(404);
    for (const body of [{}, { deep_agent_id: 'x' }, { deep_agent_id: 1.5 }, { deep_agent_id: -1 }, { deep_agent_id: null }])
      expect([body, (await ada.ask('POST', '/server/get-deep-agent', body)).status]).toEqual([body, 400]);
  });

  test('whose key is taken away ends', { timeout: long }, async () => {
    runsOn({ report: hang() });
    const { all, ask, ada } = await open();
    const id = idOf(await ask());
    const { key } = (await all.admin('POST', `/server/admin/users/${ada.id}/keys`, { name: 'second' })).body as { key: string };
    await reportAsked();
    await all.admin('DELETE', `/server/admin/users/${ada.id}/keys/${ada.keyId}`);
    const { told } = await followed(all.server.url, { key }, String(id));
    expect(told.at(-1)!.event).toBe('run.failed');
  });
});

onBothDatabases('a deep agent whose server is killed', ({ place }) => {
  test('goes on from its last step on the next one: nothing is asked twice, and a client that comes back misses nothing', { timeout: long }, async () => {
    const where = await place();
    const asked = runsOn({ report: hang(), plan: '1. Who?\n2. When?' });
    const first = await startProcess(where, upstream.url);
    const visitor = (server: typeof first) => visitorsOf({ ...server, ask: () => Promise.reject(new Error()), change: async () => {}, close: async () => {} });
    const ada = await person(visitor(first));
    const begun = await ada.ask('POST', '/server/query', { message: 'Who and when?', mode: 'deep_agent', model: 'gpt-4o-mini' });
    const id = idOf(begun);
    await expect.poll(() => asked.includes('report'), { timeout: 30_000 }).toBe(true);
    const before = await followed(first.url, ada, String(id), { until: 'plan.created' });
    await first.kill();

    const rest = runsOn();
    const second = await startProcess(where, upstream.url);
    onTestFinished(() => upstream.reset());
    const last = before.told.at(-1)!.seq!;
    const after = await followed(second.url, ada, String(id), { after: last });
    expect(after.told.at(-1)).toMatchObject({ event: 'run.completed' });
    const whole = await followed(second.url, ada, String(id));
    expect([...before.told, ...after.told]).toEqual(whole.told);
    expect(whole.told.map(({ seq }) => seq)).toEqual(whole.told.map((_, at) => at + 1));
    expect(rest).toEqual(['report']);
    const { requestId, planTokens } = (await visitor(second).as(ada.key)('GET', `/server/mine/runs/${id}`)).body;
    expect(named(after.told, 'usage').at(-1)!.data['planTokens']).toBe(planTokens);
    const { steps } = (await visitor(second).admin('GET', `/server/admin/logs/${requestId as string}`)).body as { steps?: readonly { end: string }[] };
    expect(steps!.map(({ end }) => end)).toContain('gateway-died');
    expect(named(whole.told, 'plan.created')).toHaveLength(1);
    expect(named(whole.told, 'agent.finished')).toHaveLength(2);
  });
});
