import { afterAll, afterEach } from 'vitest';
import { startUpstream, type Upstream } from './fakes/upstream/index.ts';
import { startTestServer, type TestServer, type TestServerSettings } from './server.ts';

/**
 * Starts a scripted upstream and a server in front of it, for all tests of a file. The script is cleared after each test:
 * `const { upstream, server } = await scriptedServer(({ url }) => ({ upstream: url, yaml: 'limits: { … }' }))`
 *
 * @param settings the server's settings; by default the upstream is its provider `fake`
 */
export async function scriptedServer(
  settings: (upstream: Upstream) => TestServerSettings = ({ url }) => ({ upstream: url }),
): Promise<{ readonly upstream: Upstream; readonly server: TestServer }> {
  const upstream = await startUpstream();
  const server = await startTestServer(settings(upstream));
  afterAll(async () => {
    await server.close();
    await upstream.close();
  });
  afterEach(() => upstream.reset());
  return { upstream, server };
}

/** Settings with the upstream as a provider of each wire, each with a model of the same name. @param more further settings of each model, such as `price: { … }` */
export function everyWire({ url }: Pick<Upstream, 'url'>, more = ''): string {
  const model = (name: string) => `  ${name}: { targets: [{ provider: ${name} }], ${more} }\n`;
  return `
providers:
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
  messages: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k] }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k] }
models:
${['chat', 'responses', 'messages', 'gemini'].map(model).join('')}routing: { cooldownSeconds: 0 }
`;
}
