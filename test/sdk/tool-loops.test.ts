import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { GoogleGenAI, type FunctionCall, type Part } from '@google/genai';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import Newer from 'openai-7';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** The official SDKs run tools of their own on a real folder, with current models of each vendor: the first call writes a file, the second reads it. */

const models = ['gpt-6-sol', 'gpt-5', 'gpt-6-sol-on-responses', 'claude-opus-5-5', 'claude-haiku-4-5', 'gemini-3-flash-preview', 'gemini-2.5-flash'].concat([
  'deepseek-v4',
  'kimi-k2-thinking',
  'mistral-large-latest',
  'gpt-oss-120b',
  'vertex-claude-opus-4-6',
]);
const parameters = { type: 'object', properties: { text: { type: 'string' }, again: { type: 'string' } }, additionalProperties: false } as const;
const reading = 'use the tool work with {"text":""}';
const prompt = `use the tool work with ${JSON.stringify({ text: 'it works', again: reading })}`;

const { vendors, server } = await scriptedVendors();
let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'dragoman-sdk-'))));
afterEach(() => rm(folder, { recursive: true }));

/** Writes the text into the file and says what to do next; without a text it reads the file. */
async function work({ text, again }: { readonly text?: string; readonly again?: string }): Promise<string> {
  const file = join(folder, 'made.txt');
  if (!text) return readFile(file, 'utf8');
  await writeFile(file, text);
  return String(again);
}

const inChat = (Sdk: typeof OpenAI, stream: boolean) => async (model: string) => {
  const client = new Sdk({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
  const tool = { type: 'function', function: { name: 'work', description: 'Works.', parameters, parse: JSON.parse, function: work } } as const;
  const asked = { model, messages: [{ role: 'user' as const, content: prompt }], tools: [tool] };
  const runner = stream
    ? client.chat.completions.runTools({ ...asked, stream, stream_options: { include_usage: true } })
    : client.chat.completions.runTools(asked);
  return runner.finalContent();
};

const inResponses = (isStored: boolean) => async (model: string) => {
  const client = new Newer({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
  const tools = [{ type: 'function' as const, name: 'work', description: 'Works.', parameters, strict: false }];
  const input: Newer.Responses.ResponseInput = [{ role: 'user', content: prompt }];
  let before: Newer.Responses.Response | undefined;
  for (;;) {
    const asked = { model, tools, store: isStored, input: isStored ? input.splice(0) : input };
    const response: Newer.Responses.Response = await client.responses.create({ ...asked, ...(isStored && before ? { previous_response_id: before.id } : {}) });
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) return response.output_text;
    if (!isStored) input.push(...(response.output as Newer.Responses.ResponseInputItem[]));
    for (const { call_id, arguments: json } of calls) input.push({ type: 'function_call_output', call_id, output: await work(JSON.parse(json) as object) });
    before = response;
  }
};

const inMessages = (stream: boolean) => async (model: string) => {
  const client = new Anthropic({ apiKey: server.key, baseURL: `${server.url}/server/messages`, maxRetries: 0 });
  const tool = betaTool({ name: 'work', description: 'Works.', inputSchema: parameters, run: (input) => work(input) });
  const asked = { model, max_tokens: 4000, messages: [{ role: 'user' as const, content: prompt }], tools: [tool] };
  const runner = client.beta.messages.toolRunner(stream ? { ...asked, stream } : asked);
  const { content } = await runner.runUntilDone();
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
};

const inGenai = (stream: boolean) => async (model: string) => {
  const client = new GoogleGenAI({ apiKey: server.key, httpOptions: { baseUrl: `${server.url}/server/gencompat` } });
  const callable = {
    tool: async () => ({ functionDeclarations: [{ name: 'work', description: 'Works.', parametersJsonSchema: parameters }] }),
    callTool: (calls: FunctionCall[]): Promise<Part[]> =>
      Promise.all(
        calls.map(async ({ id, name, args }) => ({ functionResponse: { ...(id ? { id } : {}), name: name!, response: { output: await work(args ?? {}) } } })),
      ),
  };
  const asked = { model, contents: prompt, config: { tools: [callable] } };
  if (!stream) return (await client.models.generateContent(asked)).text;
  let said = '';
  for await (const { text } of await client.models.generateContentStream(asked)) said += text ?? '';
  return said;
};

describe.each([
  ['openai 6', inChat(OpenAI, false)],
  ['openai 6, streamed', inChat(OpenAI, true)],
  ['openai 7', inChat(Newer as unknown as typeof OpenAI, false)],
  ['openai 7, responses', inResponses(false)],
  ['openai 7, stored responses', inResponses(true)],
  ['@anthropic-ai/sdk', inMessages(false)],
  ['@anthropic-ai/sdk, streamed', inMessages(true)],
  ['@google/genai', inGenai(false)],
  ['@google/genai, streamed', inGenai(true)],
])('%s', (_, run) => {
  test.each(models)('finishes a loop of tools with %s, and nothing is refused', async (model) => {
    expect(await run(model)).toMatch(/The tool said:[^]*it works/);
    expect(await readFile(join(folder, 'made.txt'), 'utf8')).toBe('it works');
    expect(vendors.requests.map(({ status, rule }) => [status, rule])).toEqual([
      [200, undefined],
      [200, undefined],
      [200, undefined],
    ]);
  });
});
