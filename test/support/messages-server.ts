import { expect } from 'vitest';
import type { Upstream } from './fakes/upstream/index.ts';
import { providerKey, type TestServer } from './server.ts';
import { scriptedServer } from './scripted-server.ts';

/** A server with providers of the messages wire and of the chat wire behind one scripted upstream, and how a client asks its messages interface. */
export interface MessagesServer {
  readonly upstream: Upstream;
  readonly server: TestServer;
  whole(body: object, init?: RequestInit): Promise<Whole>;
  streamed(body: object): Promise<Streamed>;
  /** What went upstream. */
  sent(at?: number): Record<string, unknown>;
}

export const messages = '/server/messages/v1/messages';
export const secondKey = 'sk-second';

interface Whole {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly message: Message;
}

export interface Message {
  readonly type: string;
  readonly content: readonly { readonly type: string; readonly text?: string; readonly thinking?: string; readonly name?: string; readonly input?: unknown }[];
  readonly stop_reason: string;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
  readonly error?: { readonly type: string; readonly message: string };
}

interface Streamed {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly frames: readonly Frame[];
  readonly types: readonly string[];
  /** All that the deltas say in this member. */
  joined(name: 'text' | 'thinking' | 'partial_json'): string;
}

export interface Frame {
  readonly type: string;
  readonly message?: { readonly id: string };
  readonly delta?: { readonly text?: string; readonly thinking?: string; readonly partial_json?: string; readonly stop_reason?: string };
  readonly error?: { readonly type: string };
}

export const request = (content: unknown = 'one two three', more: object = {}) => ({
  model: 'claude-x',
  max_tokens: 1000,
  messages: [{ role: 'user', content }],
  ...more,
});
export const look = { name: 'look', input_schema: { type: 'object', properties: { at: { type: 'string' } } } };

/** Opened before the tests of a file and closed after them. */
export async function messagesServer(): Promise<MessagesServer> {
  const { upstream, server } = await scriptedServer(({ url }) => ({
    yaml: `
providers:
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: ["${providerKey}", "${secondKey}"] }
  spare: { dialect: anthropic-messages, baseUrl: "${url}/v1", apiKeys: ["sk-spare"], headers: { x-fake: spare } }
  gpt: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: ["sk-gpt"] }
models:
  claude-x: { targets: [{ provider: claude }], limits: { context: 200000, output: 64000 } }
  claude-y: { targets: [{ provider: claude, model: claude-up }, { provider: spare, model: claude-up }] }
  claude-gone: { targets: [{ provider: claude }] }
  gpt-x: { targets: [{ provider: gpt }] }
  gpt-y: { targets: [{ provider: gpt }] }
limits: { holdHeadersSeconds: 1, hangSeconds: { stream: 1, whole: 1 }, firstByteSeconds: 2, streamIdleSeconds: 1 }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
  }));
  return {
    upstream,
    server,
    async whole(body, init) {
      const answer = await server.ask(messages, body, init);
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text, message: JSON.parse(text) as Message };
    },
    async streamed(body) {
      const answer = await server.ask(messages, { ...body, stream: true });
      const text = await answer.text();
      const frames = text
        .split('\n\n')
        .filter((frame) => frame !== '' && !frame.startsWith(':'))
        .map(frameOf);
      const joined = (name: 'text' | 'thinking' | 'partial_json') => frames.map(({ delta }) => delta?.[name] ?? '').join('');
      return { status: answer.status, headers: answer.headers, text, frames, types: frames.map(({ type }) => type), joined };
    },
    sent: (at = 0) => upstream.requests[at]?.json as Record<string, unknown>,
  };
}

/** Every frame has an `event:` line that says its type: the SDKs pass over those without. */
function frameOf(frame: string): Frame {
  const [, type, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? expect.fail(`no frame: ${frame}`);
  const value = JSON.parse(data) as Frame;
  expect(value.type).toBe(type);
  return value;
}
