import { readFileSync } from 'node:fs';
import OpenAI from 'openai-7';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chatReader, geminiReader, messagesReader, responsesReader, type Reader, type Seen } from '../cross/seen.ts';
import { chat as chatWire, gemini as geminiWire, messages as messagesWire, responses as responsesWire, type CrossedWire } from '../cross/wires.ts';
import { always, ok, startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { recordingOf } from '../support/recordings.ts';

/** What real clients were seen to send, answered by providers of every wire and by the built-in model. */

interface Captured {
  readonly name: string;
  readonly url?: string;
  readonly body: {
    readonly model?: string;
    readonly stream?: boolean;
    readonly stream_options?: { readonly include_usage?: boolean };
    readonly generationConfig?: { readonly thinkingConfig?: { readonly includeThoughts?: boolean } };
  };
}

const captured = (wire: CrossedWire): readonly Captured[] => (wire === messagesWire ? translated() : recorded(wire));

const recorded = ({ name }: CrossedWire) => JSON.parse(readFileSync(recordingOf(name, 'requests.json'), 'utf8')) as readonly Captured[];

/** Nobody's requests of the messages interface were caught: some of chat in its words. */
const translated = () =>
  recorded(chatWire)
    .filter(({ name }) => name.startsWith('openai-node-7'))
    .map(({ name, body }) => ({ name, body: messagesWire.sayRequest(chatWire.readRequest(body)).body as Captured['body'] }));

interface Interface {
  readonly wire: CrossedWire;
  readonly reader: Reader;
  /** What a request of such a client asks for when it means this model. */
  asking(request: Captured, model: string): { readonly path: string; readonly body: object; readonly stream: boolean };
  /** Its makers' own library reads the answer. @throws Error where it does not accept it */
  parsed?(body: object, answer: Response): Promise<unknown>;
}

/** What is read is what our server said to the fetch before. */
const library = (answer: Response) => new OpenAI({ apiKey: 'k', maxRetries: 0, fetch: () => Promise.resolve(answer) });

const interfaces: readonly Interface[] = [
  {
    wire: chatWire,
    reader: chatReader,
    asking: ({ body }, model) => ({ path: chat, body: { ...body, model }, stream: body.stream ?? false }),
    parsed: (body, answer) =>
      'stream' in body && body.stream
        ? library(answer)
            .chat.completions.stream(body as never)
            .finalChatCompletion()
        : library(answer).chat.completions.create(body as never),
  },
  {
    wire: responsesWire,
    reader: responsesReader,
    // The responses that they go on from were kept elsewhere.
    asking: ({ body }, model) => ({
      path: '/server/chatcompat/v1/responses',
      body: { ...body, model, previous_response_id: null },
      stream: body.stream ?? false,
    }),
    parsed: (body, answer) =>
      'stream' in body && body.stream
        ? library(answer)
            .responses.stream(body as never)
            .finalResponse()
        : library(answer).responses.create(body as never),
  },
  {
    wire: messagesWire,
    reader: messagesReader,
    asking: ({ body }, model) => ({ path: '/server/messages/v1/messages', body: { ...body, model }, stream: body.stream ?? false }),
  },
  {
    wire: geminiWire,
    reader: geminiReader,
    asking({ url = '', body }, model) {
      const stream = url.includes(':streamGenerateContent');
      return { path: `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`, body, stream };
    },
  },
];

const requests = interfaces.map((one) => ({
  ...one,
  name: one.wire.name,
  // The others mean to be refused, or are no requests for text.
  asked: captured(one.wire).filter(({ url = '', body }) => !/:(countTokens|embed)/.test(url) && isReadable(one.wire, body)),
}));

function isReadable(wire: CrossedWire, body: object): boolean {
  try {
    wire.readRequest(body);
    return true;
  } catch {
    return false;
  }
}

const wires = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'];
/** Whoever wants JSON gets it. */
const said = '{"city":"Paris"}';

let upstream: Upstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.script(always(ok({ thought: 'Hm.', text: said, tools: [{ name: 'look', json: '{"at":"it"}' }] })));
  const places: Readonly<Record<string, string>> = { 'anthropic-messages': '', gemini: '/v1beta' };
  server = await startTestServer({
    yaml: `
providers:
${wires.map((wire) => `  ${wire}: { dialect: ${wire}, baseUrl: "${upstream.url}${places[wire] ?? '/v1'}", apiKeys: [k] }`).join('\n')}
models:
${wires.map((wire) => `  by-${wire}: { targets: [{ provider: ${wire} }] }`).join('\n')}
  by-built-in: { targets: [{ provider: built-in }] }
`,
  });
});
afterAll(async () => {
  await server.close();
  await upstream.close();
});

/** Asks, reads with the eyes of a client of that interface, and lets its makers' library read it. */
async function seen({ reader, asking, parsed }: Interface, request: Captured, model: string): Promise<Seen> {
  const { path, body, stream } = asking(request, model);
  const answer = await server.ask(path, body);
  const text = await answer.text();
  expect([answer.status, text.slice(0, answer.status === 200 ? 0 : 500)]).toEqual([200, '']);
  await parsed?.(body, new Response(text, { headers: answer.headers }));
  return stream ? reader.streamed(text) : reader.whole(JSON.parse(text));
}

describe.each(requests)('a client of $name', ({ asked, ...face }) => {
  describe.each(wires)('answered by a provider of %s', (wire) => {
    test.each(asked)('reads all of it after a request of $name', async (request) => {
      const { candidates, usage } = await seen(face, request, `by-${wire}`);
      expect(candidates).toMatchObject([
        {
          text: said,
          thought: showsThoughts(face, request) ? 'Hm.' : '',
          refusal: '',
          calls: [{ name: 'look', arguments: { at: 'it' } }],
          finish: expect.stringMatching(/^(tool|length)$/),
        },
      ]);
      expect(usage.output > 0).toBe(isCounted(face, request));
    });
  });

  test.each(asked)('is answered by the built-in model after a request of $name', async (request) => {
    const { candidates, usage } = await seen(face, request, 'by-built-in');
    for (const { text, calls } of candidates) expect(text + calls.map(({ name }) => name).join('')).not.toBe('');
    expect(candidates).not.toHaveLength(0);
    expect(usage.output > 0).toBe(isCounted(face, request));
  });
});

/** Clients of the Gemini interface get thoughts if they ask for them. */
const showsThoughts = ({ wire }: Interface, { body: { generationConfig: config } }: Captured) =>
  wire !== geminiWire || config?.thinkingConfig?.includeThoughts === true;

/** Streams of chat say what they cost to those who ask. */
const isCounted = ({ wire }: Interface, { body: { stream, stream_options: options } }: Captured) =>
  wire !== chatWire || !stream || options?.include_usage === true;
