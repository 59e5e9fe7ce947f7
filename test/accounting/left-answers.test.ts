import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { faces, requestOf, type Face } from '../support/all-faces.ts';
import { stream, type Behaviour } from '../support/fakes/upstream/index.ts';
import { loggedAs, type Logged } from '../support/members.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const price = 'price: { input: 10, output: 20, cached: 1, cacheWrite: 12.5, cacheWrite1h: 20 }';
const { upstream, server } = await scriptedServer((upstream) => ({ yaml: everyWire(upstream, price) }));

/** A stream of these frames, of which those behind a `hold` come when the caller may go on. */
function held(frames: readonly (object | 'hold' | '[DONE]')[]): { readonly behaviour: Behaviour; goOn(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  async function* body() {
    for (const frame of frames)
      if (frame === 'hold') await promise;
      else yield `data: ${typeof frame === 'string' ? frame : JSON.stringify(frame)}\n\n`;
  }
  return { behaviour: { name: 'held', answer: () => stream(body()) }, goOn: resolve };
}

/** This many turns of the event loop, which is also that of the gateway. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await sleep(10);
}

/** Asks for a stream, leaves when this many pieces are on their way and something of it was read, and says what is in the log. */
async function leaves(
  face: Face,
  model: string,
  { pieces, afterwards, more = {} }: { pieces: number; afterwards?: () => void; more?: object },
): Promise<Logged> {
  const { path, body } = requestOf(face, { model, content: 'hello', stream: true, more });
  const leaving = new AbortController();
  const answer = await server.ask(path, body, { signal: leaving.signal });
  const reader = answer.body!.getReader();
  const read = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  read().catch(() => undefined);
  await upstream.until((requests) => requests[0]!.piecesSent >= pieces);
  await turns(); // until the gateway has read what was sent
  leaving.abort();
  await turns();
  afterwards?.();
  return loggedAs(server, answer.headers.get('x-request-id')!);
}

const chunk = (delta: object, finish: string | null = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const chatUsage = (usage: object) => ({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage });
const spoken = [chunk({ role: 'assistant', content: 'Well' }), chunk({ content: ', yes.' })];
const dear = { prompt_tokens: 61_000, completion_tokens: 9005, total_tokens: 70_005, completion_tokens_details: { reasoning_tokens: 9000 } };

const begun = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    usage: {
      input_tokens: 100,
      cache_read_input_tokens: 20_000,
      cache_creation_input_tokens: 3000,
      cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 2000 },
      output_tokens: 2,
    },
  },
};
const said = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Well, yes.' } },
];
const candidate = (text: string, usageMetadata: object, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
  usageMetadata,
  modelVersion: 'm',
  responseId: 'g',
});

const spokenItem = [
  { type: 'response.created', response: { id: 'resp_1', object: 'response', status: 'in_progress', model: 'm', output: [] } },
  { type: 'response.output_item.added', output_index: 0, item: { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] } },
  { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Well, yes.' },
];

describe.each(faces)('a client of %s that disconnects', (face) => {
  test('at the end of the answer pays the usage that the provider reports afterwards', async () => {
    const { behaviour, goOn } = held([...spoken, chunk({}, 'stop'), 'hold', chatUsage(dear), '[DONE]']);
    upstream.script(behaviour);
    const row = await leaves(face, 'chat', { pieces: 3, afterwards: goOn });
    expect(row).toMatchObject({ end: 'client-left', status: 499, provenance: 'provider', inputTokens: 61_000, outputTokens: 9005, planTokens: 70_005 });
  });

  test('in the middle pays the usage that the provider reported at the beginning', async () => {
    const { behaviour } = held([begun, ...said, 'hold']);
    upstream.script(behaviour);
    const row = await leaves(face, 'messages', { pieces: 3 });
    const tokens = { inputTokens: 23_100, cachedTokens: 20_000, cacheWriteTokens: 1000, cacheWrite1hTokens: 2000 };
    expect(row).toMatchObject({ end: 'client-left', provenance: 'partial', ...tokens });
    expect(row.outputTokens).toBeLessThan(20);
    expect(row.costUsd! * 1e6).toBeCloseTo(100 * 10 + 20_000 + 1000 * 12.5 + 2000 * 20 + row.outputTokens * 20);
    expect((await upstream.closed(0)).closedEarlyAt).toBeDefined();
  });

  test('pays for its prompt even if the provider begins with a usage of 0', async () => {
    const { behaviour } = held([{ ...begun, message: { ...begun.message, usage: { input_tokens: 0, output_tokens: 0 } } }, ...said, 'hold']);
    upstream.script(behaviour);
    const row = await leaves(face, 'messages', { pieces: 3 });
    expect(row).toMatchObject({ end: 'client-left', provenance: 'partial' });
    expect(row.inputTokens).toBeGreaterThan(0);
  });

  test('after the stop reason, and before anything else, pays the usage that came with it', async () => {
    const stop = { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5000 } };
    const { behaviour, goOn } = held([begun, ...said, { type: 'content_block_stop', index: 0 }, stop, 'hold', { type: 'message_stop' }]);
    upstream.script(behaviour);
    expect(await leaves(face, 'messages', { pieces: 5, afterwards: goOn })).toMatchObject({ end: 'client-left', inputTokens: 23_100, outputTokens: 5000 });
  });

  test.each<[string, readonly object[], object]>([
    [
      'messages',
      [begun, ...said, { type: 'content_block_stop', index: 0 }],
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5000 } },
    ],
    [
      'responses',
      [...spokenItem, { type: 'response.output_text.done', item_id: 'msg_1', output_index: 0, content_index: 0, text: 'Well, yes.' }],
      {
        type: 'response.completed',
        response: {
          id: 'resp_1',
          object: 'response',
          status: 'completed',
          model: 'm',
          output: [
            { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Well, yes.', annotations: [] }] },
          ],
          usage: { input_tokens: 23_100, output_tokens: 5000, total_tokens: 28_100 },
        },
      },
    ],
  ])('after the last text, before the end, pays the usage that the provider reports afterwards: %s', async (model, frames, end) => {
    const { behaviour, goOn } = held([...frames, 'hold', end]);
    upstream.script(behaviour);
    const row = await leaves(face, model, { pieces: frames.length, afterwards: goOn });
    expect(row).toMatchObject({ end: 'client-left', provenance: 'provider', inputTokens: 23_100, outputTokens: 5000 });
  });

  test('in the middle pays the running totals that the provider reports with each piece', async () => {
    const sums = (candidates: number) => ({ promptTokenCount: 400, cachedContentTokenCount: 300, candidatesTokenCount: candidates, thoughtsTokenCount: 7000 });
    const { behaviour } = held([candidate('Well', sums(1)), candidate(', yes.', sums(40)), 'hold']);
    upstream.script(behaviour);
    const row = await leaves(face, 'gemini', { pieces: 2 });
    expect(row).toMatchObject({ end: 'client-left', provenance: 'partial', inputTokens: 400, cachedTokens: 300, outputTokens: 7040 });
  });
});

test('the gateway waits two seconds for the end of an answer, and then closes the upstream connection', async () => {
  const { behaviour } = held([...spoken, chunk({}, 'stop'), 'hold']);
  upstream.script(behaviour);
  const leftAt = performance.now();
  const row = await leaves('chat', 'chat', { pieces: 3 });
  expect(row).toMatchObject({ end: 'client-left', provenance: 'partial' });
  expect((await upstream.closed(0)).closedAt! - leftAt).toBeLessThan(15_000);
});

test('a background response that is cancelled before its first word pays for the request to its provider', async () => {
  const { behaviour } = held(['hold']);
  upstream.script(behaviour);
  const asked = await server.ask('/server/chatcompat/v1/responses', { model: 'chat', input: 'hello '.repeat(1000), background: true });
  const { id } = (await asked.json()) as { id: string };
  await upstream.until((requests) => requests.length > 0);
  expect((await server.ask(`/server/chatcompat/v1/responses/${id}/cancel`, {})).status).toBe(200);
  const row = await loggedAs(server, asked.headers.get('x-request-id')!);
  expect(row).toMatchObject({ end: 'cancelled', status: 499, provenance: 'partial' });
  expect(row.inputTokens).toBeGreaterThan(1000);
  const response = (await (await server.ask(`/server/chatcompat/v1/responses/${id}`)).json()) as { status: string; usage: object };
  expect(response).toMatchObject({ status: 'cancelled', usage: { input_tokens: row.inputTokens, output_tokens: row.outputTokens } });
  const { items } = (await (await server.ask('/server/admin/usage?groupBy=model')).json()) as { items: { errors: number }[] };
  expect(items.map(({ errors }) => errors)).toEqual(items.map(() => 0));
});

test.each(faces)('an answer of the Responses API that fails after its first words costs %s what its provider counted', async (face) => {
  const usage = { input_tokens: 23_100, output_tokens: 5000, total_tokens: 28_100 };
  const response = { id: 'resp_1', object: 'response', status: 'failed', model: 'm', output: [], error: { code: 'server_error', message: 'Sorry.' }, usage };
  const { behaviour } = held([...spokenItem, { type: 'response.failed', response }]);
  upstream.script(behaviour);
  const { path, body } = requestOf(face, { model: 'responses', content: 'hello', stream: true });
  const answer = await server.ask(path, body);
  await answer.text();
  const row = await loggedAs(server, answer.headers.get('x-request-id')!);
  expect(row).toMatchObject({ end: 'upstream-cut', provenance: 'partial', inputTokens: 23_100, outputTokens: 5000 });
});

describe('thoughts without a reported count', () => {
  const high = { reasoning_effort: 'high' };

  test.each<[string, object, number, number]>([
    ['a high effort', high, 8192, 9000],
    ['a low effort', { reasoning_effort: 'low' }, 1024, 1100],
    ['no effort', { reasoning_effort: 'none' }, 0, 20],
    ['a high effort and few tokens', { ...high, max_completion_tokens: 500 }, 490, 500],
  ])('are paid by the requested effort when a client disconnects: %s', async (_, more, least, most) => {
    for (const app of ['', 'decoded']) {
      const { behaviour } = held([...spoken, 'hold']);
      upstream.reset();
      upstream.script(behaviour);
      const row = await leaves('chat', 'chat', { pieces: 2, more: { ...more, ...(app ? { app_name: app } : {}) } });
      expect(row.provenance).toBe('partial');
      expect(row.outputTokens).toBeGreaterThanOrEqual(least);
      expect(row.outputTokens).toBeLessThanOrEqual(most);
    }
  });

  test('are counted from the visible ones if the model shows them', async () => {
    for (const app of ['', 'decoded']) {
      const { behaviour } = held([chunk({ role: 'assistant', reasoning_content: 'So they ask' }), ...spoken.slice(1), 'hold']);
      upstream.reset();
      upstream.script(behaviour);
      const row = await leaves('chat', 'chat', { pieces: 2, more: { ...high, ...(app ? { app_name: app } : {}) } });
      expect(row.outputTokens).toBeLessThan(30);
    }
  });

  test('are paid even before the first visible text, as far as the elapsed time allows', async () => {
    const { behaviour } = held([begun, 'hold']);
    upstream.script(behaviour);
    const leaving = new AbortController();
    const { path, body } = requestOf('messages', {
      model: 'messages',
      content: 'hello',
      stream: true,
      more: { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 4000 },
    });
    const answer = server.ask(path, body, { signal: leaving.signal }).catch(() => undefined);
    await upstream.until((requests) => (requests[0]?.piecesSent ?? 0) >= 1);
    await turns();
    leaving.abort();
    await answer;
    const row = await newest();
    expect(row).toMatchObject({ end: 'client-left', provenance: 'partial', inputTokens: 23_100 });
    expect(row.outputTokens).toBeGreaterThan(200);
  });
});

/** The line of the only call of the model `messages` that is `client-left` without having been read. */
async function newest(): Promise<Logged> {
  for (;;) {
    const answer = await server.ask('/server/admin/logs?limit=1');
    const { items } = (await answer.json()) as { items: Logged[] };
    if (items[0]?.inputTokens === 23_100) return items[0];
    await sleep(20);
  }
}
