import * as newest from '@google/genai';
import * as before from 'genai-2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** What we use of Google's SDK, whichever version. */
interface Sdk {
  readonly GoogleGenAI: new (options: object) => Client;
}
interface Client {
  readonly models: {
    generateContent(asked: object): Promise<Said>;
    generateContentStream(asked: object): Promise<AsyncIterable<Said>>;
    countTokens(asked: object): Promise<{ readonly totalTokens: number }>;
    list(): Promise<AsyncIterable<{ readonly name: string }>>;
    get(asked: object): Promise<{ readonly name: string }>;
  };
  readonly chats: { create(asked: object): Chat };
}
interface Chat {
  sendMessage(asked: object): Promise<Said>;
  sendMessageStream(asked: object): Promise<AsyncIterable<Said>>;
  getHistory(curated?: boolean): readonly { readonly role: string; readonly parts: readonly { readonly text?: string }[] }[];
}
interface Said {
  readonly text: string | undefined;
  readonly functionCalls?: readonly { readonly name: string; readonly args: object }[];
  readonly modelVersion: string;
  readonly usageMetadata: { readonly totalTokenCount: number };
  readonly candidates: readonly { readonly finishReason?: string }[];
}

/** The newest version, and the one before. */
const sdks = [
  { name: '@google/genai', sdk: newest as unknown as Sdk },
  { name: 'genai-2', sdk: before as unknown as Sdk },
];

let upstream: Upstream;
let servers: Record<string, TestServer>;

beforeAll(async () => {
  upstream = await startUpstream();
  servers = {
    'the built-in model': await startTestServer(),
    'a region': await startTestServer({
      yaml: `
providers:
  platform: { dialect: gemini, kind: vertex, project: p, baseUrl: "${upstream.url}/{region}/v1", credentials: { accessToken: t }, regions: [us-central1, us-east1] }
models:
  gemini-2.5-flash: { targets: [{ provider: platform }] }
  gemini-2.5-pro: { targets: [{ provider: platform }] }
`,
    }),
  };
});
afterAll(async () => {
  await Promise.all(Object.values(servers).map((server) => server.close()));
  await upstream.close();
});

describe.each(sdks)('$name', ({ sdk }) => {
  const clientOf = (who: string, more: object = {}, http: object = {}) => {
    const { url, key } = servers[who]!;
    return new sdk.GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: `${url}/server/gencompat`, headers: { 'x-access-tokens': key }, ...http }, ...more });
  };

  describe.each(['the built-in model', 'a region'])('answered by %s', (who) => {
    test.each(['flash', 'gemini-2.5-flash', 'gemini-2.5-pro-preview-05-06', 'models/gemini-2.5-flash', 'publishers/google/models/gemini-2.5-flash'])(
      'generates content from %s',
      async (model) => {
        const said = await clientOf(who).models.generateContent({ model, contents: 'Say exactly: hello you' });
        expect(said.text).toContain('hello you');
        expect(said.modelVersion).not.toBe('');
        expect(said.usageMetadata.totalTokenCount).toBeGreaterThan(0);
      },
    );

    test('takes a configuration, an image and a system instruction', async () => {
      const said = await clientOf(who).models.generateContent({
        model: 'flash',
        contents: [{ role: 'user', parts: [{ text: 'Say exactly: one two three' }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }] }],
        config: {
          systemInstruction: 'be brief',
          temperature: 0.2,
          topK: 20,
          topP: 0.9,
          maxOutputTokens: 50,
          candidateCount: 1,
          stopSequences: ['STOP'],
          safetySettings: [{ category: 'HARM_CATEGORY_HATE_SPEECH', threshold: 'BLOCK_NONE' }],
        },
      });
      expect(said.candidates[0]?.finishReason).toBe('STOP');
    });

    test.each(['v1', 'v1beta'])('streams, with the version %s in the address', async (apiVersion) => {
      const chunks: Said[] = [];
      for await (const chunk of await clientOf(who, {}, { apiVersion }).models.generateContentStream({
        model: 'flash',
        contents: 'Say exactly: one two three',
      }))
        chunks.push(chunk);
      expect(chunks.map(({ text }) => text ?? '').join('')).toContain('one two three');
      expect(chunks.at(-1)?.candidates[0]?.finishReason).toBe('STOP');
    });

    test('chats, streamed and not, and its history is whole', async () => {
      const talk = clientOf(who).chats.create({ model: 'flash' });
      await talk.sendMessage({ message: 'Say exactly: one' });
      for await (const _ of await talk.sendMessageStream({ message: 'Say exactly: two words' }));
      const history = talk.getHistory(true);
      expect([...new Set(history.map(({ role }) => role))]).toEqual(['user', 'model']);
      expect(history.filter(({ role }) => role === 'user')).toHaveLength(2);
      expect(JSON.stringify(history)).toContain('two');
    });

    test('express mode asks at the address of the platform', async () => {
      const client = clientOf(who, { vertexai: true }, { apiVersion: 'v1beta' });
      expect((await client.models.generateContent({ model: 'gemini-2.5-flash', contents: 'Say exactly: hello' })).text).toContain('hello');
    });

    test('counts tokens and lists models', async () => {
      const client = clientOf(who);
      expect((await client.models.countTokens({ model: 'flash', contents: 'hi' })).totalTokens).toBeGreaterThan(0);
      const listed: string[] = [];
      for await (const { name } of await client.models.list()) listed.push(name);
      expect(listed).toContain('models/built-in');
      expect((await client.models.get({ model: 'built-in' })).name).toBe('models/built-in');
      let onPlatform = 0;
      for await (const { name } of await clientOf(who, { vertexai: true }, { apiVersion: 'v1beta' }).models.list()) if (name) onPlatform++;
      expect(onPlatform).toBeGreaterThan(0);
    });
  });

  test('an answer conforms to a schema', async () => {
    const said = await clientOf('the built-in model').models.generateContent({
      model: 'flash',
      contents: 'json',
      config: {
        responseMimeType: 'application/json',
        responseSchema: { type: 'OBJECT', properties: { city: { type: 'STRING' }, n: { type: 'INTEGER' } }, required: ['city', 'n'] },
      },
    });
    expect(JSON.parse(said.text!)).toEqual({ city: expect.any(String) as string, n: expect.any(Number) as number });
  });

  test('calls functions by itself until it has the answer', async () => {
    const asked: object[] = [];
    const weather = {
      tool: async () => ({ functionDeclarations: [{ name: 'get_weather', parameters: { type: 'OBJECT', properties: { location: { type: 'STRING' } } } }] }),
      async callTool(calls: { name: string; args: object }[]) {
        asked.push(...calls.map(({ args }) => args));
        return calls.map(({ name }) => ({ functionResponse: { name, response: { result: 'sunny as ever' } } }));
      },
    };
    const said = await clientOf('the built-in model').models.generateContent({
      model: 'flash',
      contents: 'get_weather in Paris',
      config: { tools: [weather] },
    });
    expect(asked).toHaveLength(1);
    expect(said.text).toContain('sunny as ever');
  });

  test('hears of a bad key and of an unknown model as such', async () => {
    const { url } = servers['the built-in model']!;
    const stranger = new sdk.GoogleGenAI({ apiKey: 'bad', httpOptions: { baseUrl: `${url}/server/gencompat` } });
    await expect(stranger.models.generateContent({ model: 'flash', contents: 'hi' })).rejects.toMatchObject({ status: 401 });
    await expect(clientOf('the built-in model').models.generateContent({ model: 'gpt-nobody', contents: 'hi' })).rejects.toMatchObject({ status: 404 });
  });
});
