/* What becomes of runs whose work is interrupted, and what they count: all that is booked of them. */
import { expect, onTestFinished, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { always, hang, headersThenHang, ok, startUpstream, toolCalls } from '../../support/fakes/upstream/index.ts';
import { eventsIn, runs, type SentEvent } from './run-events.ts';
import { person, visited, type Asker, type Person, type Visited } from './visitors.ts';

const long = 120_000;
const model = 'gpt-4o-mini';

interface Booked {
  readonly end: string;
  readonly planTokens: number;
}

/** Somebody with agents, and the newest run of theirs. */
async function begun() {
  const home = await anyPlace();
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const all = await visited(home, { upstream: upstream.url });
  const ada = await person(all);
  const made = async (more: object) =>
    (await ada.ask('POST', '/server/mine/agents', { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model, ...more })).body['id'] as number;
  /** @param at the request at which its model hangs when it has begun to speak */
  const execute = async (agent: number, at: number) => {
    upstream.script(headersThenHang({ afterEvents: 3 }));
    void ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Go.', streaming: false }).catch(() => undefined);
    await upstream.until((requests) => (requests[at]?.piecesSent ?? 0) >= 3);
    return ((await ada.ask('GET', '/server/mine/runs')).body['items'] as { id: number }[])[0]!.id;
  };
  return { home, upstream, all, ada, made, execute };
}

const one = async (ask: Asker, run: number) => (await ask('GET', `/server/mine/runs/${run}`)).body;

async function expectAllCounted(ask: Asker, admin: Asker, { run, ends }: { readonly run: number; readonly ends: readonly string[] }): Promise<void> {
  const { requestId, planTokens } = await one(ask, run);
  const booked = async () => {
    const { steps = [], ...own } = (await admin('GET', `/server/admin/logs/${requestId as string}`)).body as unknown as Booked & { steps?: readonly Booked[] };
    return [own, ...steps];
  };
  await expect.poll(async () => (await booked()).map(({ end }) => end).toSorted(), { timeout: 30_000 }).toEqual(ends);
  expect(planTokens).toBe((await booked()).reduce((sum, row) => sum + row.planTokens, 0));
}

test('a run that is cancelled counts what its agents have spent', { timeout: long }, async () => {
  const { upstream, all, ada, made, execute } = await begun();
  const helper = await made({});
  const agent = await made({ tools: [{ type: 'agent', agent: helper }] });
  upstream.script(toolCalls([{ name: `agent__${helper}`, json: '{"task":"Think."}' }]));
  const run = await execute(agent, 1);
  expect((await ada.ask('POST', `/server/mine/runs/${run}/cancel`)).body).toMatchObject({ state: 'cancelled' });
  await expectAllCounted(ada.ask, all.admin, { run, ends: ['cancelled', 'tool'] });
});

test.each([
  [undefined, 'completed', ['cancelled', 'completed']],
  [120, 'failed', ['cancelled']],
] as const)('a run whose server is stopped counts the answer that it lost by that (limit: %s)', { timeout: long }, async (tokens, state, ends) => {
  const { home, upstream, all, ada, made, execute } = await begun();
  const run = await execute(await made(tokens === undefined ? {} : { limits: { tokens } }), 0);
  await all.server.close();
  upstream.script(ok({ text: 'All done.' }));
  const again = await visited(home, { upstream: upstream.url });
  const ask = again.as(ada.key);
  await expect.poll(async () => (await one(ask, run))['state'], { timeout: 40_000 }).toBe(state);
  expect(await one(ask, run)).toMatchObject(
    tokens === undefined ? { message: 'All done.' } : { error: expect.stringContaining('its limit of 120 tokens') as string },
  );
  await expectAllCounted(ask, again.admin, { run, ends });
});

test('a run that takes too long ends with the same status whole and in streams', { timeout: long }, async () => {
  const { upstream, all, ada, made } = await begun();
  const agent_id = await made({ limits: { seconds: 1 } });
  upstream.script(always(hang()));
  const error = 'The run ended: it has reached its limit of 1 seconds at work.';
  const whole = await ada.ask('POST', '/server/execute-agent', { agent_id, message: 'Go.', streaming: false });
  expect(whole.body).toMatchObject({ status: 200, execution_status: 'timeout', error });
  const { events } = await runs(ada, all.server.url).executed({ agent_id, message: 'Go.', streaming: true });
  expect(events.at(-1)).toMatchObject({ event: 'workflow_failed', data: { data: { execution_status: 'timeout', error } } });
});

const ways: readonly [string, (all: Visited, who: Person) => Promise<unknown>, { readonly error: RegExp; readonly status: string }][] = [
  ['the server shuts down', ({ server }) => server.close(), { error: /^The server is shutting down\.$/, status: 'unknown' }],
  [
    'its user is suspended',
    ({ admin }, { id }) => admin('PATCH', `/server/admin/users/${id}`, { status: 'suspended' }),
    { error: /API key|^Token is invalid \[1\]$/, status: 'failed' },
  ],
  [
    'its key is deleted',
    ({ admin }, { id, keyId }) => admin('DELETE', `/server/admin/users/${id}/keys/${keyId}`),
    { error: /API key|^Token is invalid \[1\]$/, status: 'failed' },
  ],
];

test.each(ways)('a run whose stream is cut tells so in its last event, whichever stream it is: %s', { timeout: long }, async (_, cut, { error, status }) => {
  const { upstream, all, ada, made } = await begun();
  const agent = await made({});
  upstream.script(headersThenHang({ afterEvents: 3 }), headersThenHang({ afterEvents: 3 }), headersThenHang({ afterEvents: 3 }));
  const { execute, followed } = runs(ada, all.server.url);
  const asked = { agent_id: agent, message: 'Go.', streaming: true };
  const executing = await Promise.all(['text/event-stream', 'text/plain'].map((accept) => execute(asked, accept)));
  const deep = await ada.ask('POST', '/server/query', { message: 'What is it?', mode: 'deep_agent', model });
  const id = (deep.body['added_obj'] as { deep_agent_id: number }).deep_agent_id;
  const whole = await ada.ask('GET', `/server/mine/runs?kind=agent`);
  const [{ id: run }] = whole.body['items'] as [{ id: number }];
  const deepAgent = (accept: string) =>
    fetch(`${all.server.url}/server/get-deep-agent`, {
      method: 'POST',
      headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json', accept },
      body: JSON.stringify({ deep_agent_id: id }),
    });
  const following = await Promise.all([followed(String(run)), deepAgent('text/event-stream'), deepAgent('text/plain')]);
  await upstream.until((requests) => requests.filter(({ piecesSent }) => piecesSent >= 3).length === 3);
  const texts = Promise.all([...executing, ...following].map((answer) => answer.text()));
  await cut(all, ada);
  const told = (await texts).map((text) => {
    const frames = text.startsWith('{') ? text.split('@|@sep@|@').map((frame) => JSON.parse(frame) as SentEvent) : [];
    return frames.length > 0 ? frames : eventsIn(text).map(({ data }) => data as unknown as SentEvent);
  });
  for (const events of told.slice(0, 2)) {
    const failures = events.filter(({ event }) => event === 'workflow_failed');
    expect(failures).toEqual([events.at(-1)]);
    expect(failures[0]!.data).toEqual({
      execution_id: expect.any(String) as string,
      execution_status: status,
      error: expect.stringMatching(error) as string,
    });
  }
  for (const events of told.slice(2)) {
    const last = events.at(-1)!;
    expect(last).toMatchObject({ event: expect.stringMatching(/^(stream|run)\.failed$/) as string, data: { message: expect.stringMatching(error) as string } });
    if (status === 'unknown') expect(last).toMatchObject({ event: 'stream.failed', data: { status: 503 } });
  }
});
