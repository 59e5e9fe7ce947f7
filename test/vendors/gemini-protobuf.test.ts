import { beforeEach, describe, expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** What JSON of protocol buffers allows (https://protobuf.dev/programming-guides/json/), as Google's examples and older SDKs send it. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));
beforeEach(() => upstream.reset());

const hi = [{ role: 'user', parts: [{ text: 'Hello' }] }];
const ask = async (more: object, model = 'gemini') => {
  upstream.script(always(ok()));
  const answer = await askFace(server, 'gencompat', { model, content: 'Hello', stream: false, more });
  return { ...answer, sent: upstream.requests.at(-1)?.json as Readonly<Record<string, unknown>> | undefined };
};

test('a list of one object may be the object', async () => {
  const { status, sent } = await ask({
    contents: { role: 'user', parts: { text: 'Hello' } },
    tools: { function_declarations: { name: 'look' } },
    safety_settings: { category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' },
  });
  expect(status).toBe(200);
  expect(sent).toMatchObject({
    contents: hi,
    tools: [{ functionDeclarations: [{ name: 'look' }] }],
    safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  });
});

describe('enums as numbers, as google-generativeai for Python sends them over REST', () => {
  const parameters = { type: 6, properties: { a: { type: 3 }, b: { type: 5, items: { type: 1 } } }, required: ['a'] };
  const more = {
    contents: [
      ...hi,
      { role: 'model', parts: [{ executableCode: { language: 1, code: 'print(1)' } }, { codeExecutionResult: { outcome: 1, output: '1' } }] },
      ...hi,
    ],
    tools: [{ functionDeclarations: [{ name: 'look', parameters }] }],
    toolConfig: { functionCallingConfig: { mode: 2 } },
    safetySettings: [{ category: 7, threshold: 4 }],
  };

  test('are names for Gemini', async () => {
    const { status, sent } = await ask(more);
    expect(status).toBe(200);
    expect(sent).toMatchObject({
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
      toolConfig: { functionCallingConfig: { mode: 'ANY' } },
    });
    expect(JSON.stringify(sent)).toMatch(/"language":"PYTHON".*"outcome":"OUTCOME_OK"/);
  });

  test('are understood for another provider', async () => {
    const { status, sent } = await ask({ ...more, contents: hi }, 'chat');
    expect(status).toBe(200);
    expect(sent).toMatchObject({
      tool_choice: 'required',
      tools: [
        {
          function: {
            parameters: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'array', items: { type: 'string' } } }, required: ['a'] },
          },
        },
      ],
    });
  });

  test('are understood in a response schema', async () => {
    const generationConfig = { responseMimeType: 'application/json', responseSchema: { type: 6, properties: { word: { type: 1 } }, required: ['word'] } };
    const { text } = await askFace(server, 'gencompat', { model: 'built-in', content: 'Hello', stream: false, more: { generationConfig } });
    expect(JSON.parse(text)).toEqual({ word: expect.any(String) });
  });

  test('are understood in embeddings', async () => {
    const answer = await fetch(`${server.url}/server/gencompat/v1beta/models/built-in-embedding:embedContent`, {
      method: 'POST',
      headers: { 'x-access-tokens': server.key, 'content-type': 'application/json' },
      body: JSON.stringify({ content: { parts: [{ text: 'hi' }] }, taskType: 1 }),
    });
    expect(answer.status).toBe(200);
  });

  test('that stand for nothing are refused', async () => {
    expect(await ask({ safetySettings: [{ category: 99, threshold: 4 }] })).toMatchObject({ status: 400, sent: undefined });
  });
});

test('names that are data of the client stay as they are in a body in snake_case', async () => {
  const { sent } = await ask({
    contents: [{ role: 'user', parts: [{ text: 'Hello', part_metadata: { my_key: { its_value: 1 } } }] }],
    tools: [{ mcp_servers: [{ name: 'owls', streamable_http_transport: { url: 'https://a.example', headers: { x_api_key: '1' } } }] }],
  });
  expect(sent).toMatchObject({
    contents: [{ parts: [{ partMetadata: { my_key: { its_value: 1 } } }] }],
    tools: [{ mcpServers: [{ streamableHttpTransport: { headers: { x_api_key: '1' } } }] }],
  });
});

test('system contents alone are said by the user', async () => {
  const { status, sent } = await ask({ contents: [{ role: 'system', parts: [{ text: 'Tell me a joke.' }] }] });
  expect(status).toBe(200);
  expect(sent).toMatchObject({ contents: [{ role: 'user', parts: [{ text: 'Tell me a joke.' }] }] });
});

test.each([
  ['https://www.youtube.com/watch?v=9hE5-98ZeCg', 'video/mp4'],
  ['gs://owls/flight.webm', 'video/webm'],
  ['gs://owls/tree.jpg', 'image/jpeg'],
  ['files/abc-123', undefined],
])('the file %s without a MIME type is not called a PDF', async (fileUri, mimeType) => {
  const { status, sent } = await ask({ contents: [{ role: 'user', parts: [{ text: 'What is this?' }, { fileData: { fileUri } }] }] });
  expect(status).toBe(200);
  const [content] = sent!['contents'] as { parts: object[] }[];
  expect(content!.parts[1]).toEqual({ fileData: { ...(mimeType ? { mimeType } : {}), fileUri } });
});

test('a video without a MIME type is no document for another provider', async () => {
  const { headers, sent } = await ask(
    { contents: [{ role: 'user', parts: [{ text: 'Hello' }, { fileData: { fileUri: 'https://youtu.be/9hE5-98ZeCg' } }] }] },
    'messages',
  );
  expect(sent).toMatchObject({ messages: [{ role: 'user', content: 'Hello' }] });
  expect(headers.get('x-dragoman-warnings')).toContain('video:');
});

test('how functions are called arrives as it was asked for', async () => {
  const tools = [{ functionDeclarations: [{ name: 'look' }, { name: 'hear' }] }];
  const functionCallingConfig = { mode: 'VALIDATED', allowedFunctionNames: ['hear'], streamFunctionCallArguments: true };
  const { sent, headers } = await ask({ tools, toolConfig: { functionCallingConfig } });
  expect(sent).toMatchObject({ tools, toolConfig: { functionCallingConfig } });
  expect(headers.get('x-dragoman-warnings')).toBeNull();
  const elsewhere = await ask({ tools, toolConfig: { functionCallingConfig } }, 'chat');
  expect(elsewhere.headers.get('x-dragoman-warnings')).toContain('toolConfig.functionCallingConfig.streamFunctionCallArguments');
});
