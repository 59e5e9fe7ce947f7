import { expect, test } from 'vitest';
import { scriptedServer } from '../support/scripted-server.ts';

const { server, upstream } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k], headers: { Authorization: Bearer own, X-Team: red } }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k], headers: { Anthropic-Version: 2099-01-01, X-API-Key: own } }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k], headers: { X-Goog-Api-Key: own } }
models:
  chat: { targets: [{ provider: chat }] }
  claude: { targets: [{ provider: claude }] }
  gemini: { targets: [{ provider: gemini }] }
`,
}));

test.each([
  ['chat', { authorization: ['Bearer own'], 'x-team': ['red'] }],
  ['claude', { 'anthropic-version': ['2099-01-01'], 'x-api-key': ['own'] }],
  ['gemini', { 'x-goog-api-key': ['own'] }],
])('headers of the provider %s replace those of the gateway, in whatever case they are written', async (model, headers) => {
  const before = upstream.requests.length;
  await server.ask('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }] });
  const { rawHeaders } = upstream.requests[before]!;
  const sent = (name: string) => rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]!.toLowerCase() === name);
  for (const [name, values] of Object.entries(headers)) expect([name, sent(name)]).toEqual([name, values]);
});
