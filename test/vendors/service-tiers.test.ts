import { expect, test } from 'vitest';
import { askFace, everyWay } from '../support/all-faces.ts';
import { always, body, replay } from '../support/fakes/upstream/index.ts';
import { newMember } from '../support/members.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** The tier that answered decides what the tokens cost. https://platform.openai.com/docs/pricing */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one, 'price: { input: 2, output: 10 }') }));

const usage = { prompt_tokens: 100_000, completion_tokens: 10_000, total_tokens: 110_000 };

function completion(stream: boolean, more: object) {
  const base = { id: 'c', created: 1, model: 'm', ...more };
  const chunk = (value: object) => JSON.stringify({ ...base, object: 'chat.completion.chunk', ...value });
  if (!stream)
    return body(
      JSON.stringify({
        ...base,
        object: 'chat.completion',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
        usage,
      }),
    );
  return replay([
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi.' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    chunk({ choices: [], usage }),
  ]);
}

async function costOf(requestId: string): Promise<number> {
  for (;;) {
    const { costUsd } = (await (await server.ask(`/server/admin/logs/${requestId}`)).json()) as { readonly costUsd?: number | null };
    if (typeof costUsd === 'number') return costUsd;
  }
}

test.each(everyWay)('a chat completion of %s (streamed: %s) costs half on flex and double on priority', async (face, stream) => {
  for (const [more, cost] of [
    [{ service_tier: 'flex' }, 0.15],
    [{ service_tier: 'priority' }, 0.6],
    [{ service_tier: 'default' }, 0.3],
    [{}, 0.3],
    [{ service_tier: 'flex', x_groq: { id: 'req_1' } }, 0.3], // whose tiers cost the same: https://console.groq.com/docs/service-tiers
  ] as const) {
    upstream.script(completion(stream, more));
    const answer = await askFace(server, face, { model: 'chat', content: 'hi', stream });
    expect(answer).toMatchObject({ status: 200, complete: true });
    expect([more, await costOf(answer.headers.get('x-request-id')!)]).toEqual([more, expect.closeTo(cost, 6)]);
  }
});

test.each([
  ['chat', { max_tokens: 10_000 }],
  ['responses', { max_output_tokens: 10_000 }],
] as const)('a call of %s clients has set aside what the tier costs that it asks for', async (face, limit) => {
  upstream.script(always(completion(false, {})));
  const { keys } = await newMember(server, { monthlyUsd: 0.15 }); // 10,000 tokens of an answer cost 0.1
  const asked = async (tier: object) => {
    const given = { model: 'chat', content: 'hi', stream: false, headers: { 'x-access-tokens': keys[0]! }, more: { ...limit, ...tier } };
    return (await askFace(server, face, given)).status;
  };
  expect(await asked({ service_tier: 'priority' })).toBe(429);
  expect(upstream.requests).toHaveLength(0);
  expect(await asked({ service_tier: 'flex' })).toBe(200);
});
