import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { always, ok, startUpstream, type Upstream } from './fakes/upstream/index.ts';
import { chat, openHouse, type House } from './house.ts';

interface Captured {
  readonly name: string;
  readonly body: { readonly model: string; readonly stream?: boolean };
}

/** What real clients were seen to send. */
const captured = JSON.parse(readFileSync(new URL('../src/dialects/openai-chat/recordings/requests.json', import.meta.url), 'utf8')) as Captured[];

interface Choice {
  readonly index: number;
  readonly message?: { readonly role: string };
  readonly delta?: { readonly role?: string };
  readonly finish_reason: string | null;
}

let upstream: Upstream;
let houses: Record<string, House>;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.script(always(ok()));
  houses = {
    'a provider': await openHouse({ upstream: upstream.url }),
    'the built-in model': await openHouse({ yaml: 'models: { gpt-4o-mini: { targets: [{ provider: built-in }] } }\n' }),
  };
});
afterAll(async () => {
  await Promise.all(Object.values(houses).map((house) => house.close()));
  await upstream.close();
});

describe.each(['a provider', 'the built-in model'])('answered by %s', (who) => {
  test.each(captured)('a request of $name gets what its client can read', async ({ body }) => {
    const answer = await houses[who]!.ask(chat, body);
    if (body.model === 'no-such-model-xyz') return expect(answer.status).toBe(404);
    expect(answer.status).toBe(200);
    const text = await answer.text();
    if (!body.stream) {
      const { object, choices } = JSON.parse(text) as { object: string; choices: Choice[] };
      expect(object).toBe('chat.completion');
      return expect(choices.map(({ index, message, finish_reason }) => [index, message?.role, typeof finish_reason])).toEqual([[0, 'assistant', 'string']]);
    }
    const frames = text.split('\n\n').filter(Boolean);
    expect(frames.pop()).toBe('data: [DONE]');
    const choices = frames.flatMap((frame) => (JSON.parse(frame.slice('data: '.length)) as { choices: Choice[] }).choices);
    expect(choices[0]?.delta?.role).toBe('assistant');
    expect(choices.filter(({ finish_reason }) => finish_reason !== null)).toHaveLength(1);
    return undefined;
  });
});
