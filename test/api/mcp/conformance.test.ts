/* The conformance tests of the protocol: our client of MCP servers, and the gateway as a server. */
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fewAtOnce } from '#kit/async/few-at-once';
import { conforms, scenariosOf } from '../../support/conformance.ts';
import { ownPort } from '../../support/ports.ts';
import { startTestServer } from '../../support/server.ts';
import { person, visited, visitorsOf, type Person } from '../native/visitors.ts';
import { anyPlace } from '../../support/databases.ts';

const long = 180_000;
const servers = '/server/mine/mcp-servers';

/** Scenarios of what our client does not do. */
const notOurs: Readonly<Record<string, string>> = {
  'sse-retry': 'a call whose stream ends without its answer has failed: no server keeps us coming back',
  'auth/basic-cimd': 'a document about us as client id needs a public address of ours: we register instead',
  'auth/pre-registration': 'without registration at the authorization server a token is set in the headers of the server',
  'auth/2025-03-26-oauth-metadata-backcompat': 'nobody is sent to an authorization server that does not say that it knows PKCE with S256',
  'auth/2025-03-26-oauth-endpoint-fallback': 'nobody is sent to an authorization server that does not describe itself',
  'auth/client-credentials-jwt': 'users sign in for themselves: a machine has a token in the headers of the server',
  'auth/client-credentials-basic': 'as above',
  'auth/cross-app-access-complete-flow': 'as above',
};

/** Scenarios that a client runs at `/server/mcp`. */
const offered = ['server-initialize', 'ping', 'tools-list', 'resources-list', 'prompts-list', 'prompts-get-simple', 'dns-rebinding-protection'];

/** The others, by the beginnings of their names. */
const notOffered: Readonly<Record<string, string>> = {
  'tools-call-': 'are of tools with names of their own: ours begin with what they are of, as in plugin__summarise',
  elicitation: 'as above',
  'json-schema-2020-12': 'as above',
  'resources-read-': 'are of addresses of their own: ours begin with dragoman://',
  'resources-templates-read': 'as above',
  'prompts-get-with-': 'personas have neither arguments nor pictures',
  'prompts-get-embedded-resource': 'as above',
  'logging-set-level': 'there is no logging',
  'completion-complete': 'there are no completions',
  'resources-subscribe': 'nobody is told of changes of files',
  'resources-unsubscribe': 'as above',
  'server-sse-': 'there are no sessions: each request is answered by itself, by whichever machine',
};

/** Asks a server for its tools and calls one, signing in as often as it wants that, but for three times at most. */
async function called({ ask }: Person, at: string, call: object): Promise<unknown> {
  let result = (await ask('POST', `${at}/test`)).body;
  for (let tries = 0; tries < 3; tries++) {
    if (result['state'] === 'sign-in') {
      const { url } = (await ask('POST', `${at}/oauth`)).body;
      if (typeof url !== 'string') break;
      const back = await fetch(url, { redirect: 'manual' });
      await fetch(back.headers.get('location')!);
    }
    result = (await ask('POST', `${at}/test`, call)).body;
    if (result['state'] !== 'sign-in') break;
  }
  return result;
}

/** An agent calls a tool, and its user is shown a form, which is sent as it is. */
async function asked({ ask }: Person, server: number, tool: string): Promise<unknown> {
  const agent = { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'built-in', tools: [{ type: 'mcp', server, approval: 'never' }] };
  const { id } = (await ask('POST', '/server/mine/agents', agent)).body;
  const { body } = await ask('POST', '/server/execute-agent', { agent_id: id, message: `Call s__${tool} now.`, streaming: false });
  const { question, schema } = body['waitsFor'] as { question: string; schema: { properties: Record<string, { default?: unknown }> } };
  const content = Object.fromEntries(Object.entries(schema.properties).map(([name, { default: filled }]) => [name, filled]));
  const run = `/server/mine/runs/${body['execution_id'] as string}`;
  await ask('POST', `${run}/answer`, { question, action: 'accept', content });
  await expect.poll(async () => (await ask('GET', run)).body['state'], { timeout: 30_000 }).toBe('completed');
  return content;
}

async function used(who: Person, url: string, scenario: string): Promise<unknown> {
  const id = (await who.ask('POST', servers, { name: 's', url, approval: 'never' })).body['id'] as number;
  if (scenario.startsWith('elicitation')) return asked(who, id, 'test_client_elicitation_defaults');
  const [tool, args] = scenario === 'tools_call' ? ['add_numbers', { a: 5, b: 3 }] : [scenario === 'sse-retry' ? 'test_reconnection' : 'test-tool', {}];
  return called(who, `${servers}/${id}`, { tool, arguments: args });
}

/** Until the test ends. @returns its address */
async function listening(how: RequestListener): Promise<string> {
  const server = createServer(how).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

describe('the client of MCP servers', () => {
  test('conforms in each scenario, but for what it does not do', { timeout: long }, async () => {
    const names = await scenariosOf('client');
    expect(names.length).toBeGreaterThan(20);
    const ports: number[] = [];
    while (ports.length < names.length * 4) ports.push(await ownPort());
    const allow = JSON.stringify(ports.map((port) => `http://localhost:${port}`));
    const gateway = await startTestServer({ yaml: `mcp: { approval: never }\noutbound: { allow: ${allow} }\n` });
    onTestFinished(gateway.close);
    const all = visitorsOf(gateway);
    const driven = async (message: IncomingMessage): Promise<unknown> => {
      const { scenario, url } = (await json(message)) as { scenario: string; url: string };
      return used(await person(all), url, scenario);
    };
    const driver = await listening(
      (message, response) =>
        void driven(message)
          .catch((error: unknown) => `It failed: ${String(error)}`)
          .then((said) => response.end(JSON.stringify(said))),
    );
    const command = `${process.execPath} ${fileURLToPath(new URL('../../support/conformance-command.ts', import.meta.url))} ${driver}`;
    const found = await fewAtOnce(
      names.map((name, at) => ({ name, listens: ports.slice(at * 4, at * 4 + 4) })),
      3,
      async ({ name, listens }) => {
        const tried = (from: number) => conforms('client', name, ['--command', command], listens.slice(from, from + 2));
        const first = await tried(0);
        const isExpected = name in notOurs ? first.problems.length > 0 : first.problems.length === 0 && first.passed.length > 0;
        return { name, ...(isExpected ? first : await tried(2)) }; // some measure times, or want a port that somebody has taken since: the machine may be busy
      },
    );
    for (const { name, passed, problems, printed } of found)
      if (name in notOurs) expect([name, problems.length > 0]).toEqual([name, true]);
      else expect([name, problems, passed.length > 0 ? '' : printed]).toEqual([name, [], '']);
    expect(Object.keys(notOurs).filter((name) => !names.includes(name))).toEqual([]);
  });
});

/** Sends what comes on to the gateway, with a key, and with its name in place of our own. @returns the address */
async function keyed(gateway: string, key: string): Promise<string> {
  const { hostname, port, host } = new URL(gateway);
  const own = await listening((message, response) => {
    const ours = (text: string | undefined) => text?.replace(new URL(own).host, host.replace('127.0.0.1', 'localhost'));
    const { host: asked, origin, ...headers } = message.headers;
    const sent = { ...headers, authorization: `Bearer ${key}`, host: ours(asked), ...(origin ? { origin: ours(origin) } : {}) };
    const onward = request({ hostname, port, path: message.url, method: message.method, headers: sent }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    message.pipe(onward);
  });
  return own;
}

describe('/server/mcp', () => {
  test('conforms in each scenario, but for what it does not offer', { timeout: long }, async () => {
    const all = await visited(await anyPlace());
    const ada = await person(all);
    await ada.ask('POST', '/server/mine/personas', { name: 'test_simple_prompt', description: 'A simple one.', prompt: 'This is a simple prompt.' });
    const url = `${await keyed(all.server.url, ada.key)}/server/mcp`;
    const names = await scenariosOf('server');
    expect(names.filter((name) => !Object.keys(notOffered).some((beginning) => name.startsWith(beginning)))).toEqual(offered);
    const found = await fewAtOnce(offered, 3, async (name) => ({ name, ...(await conforms('server', name, ['--url', url])) }));
    for (const { name, passed, problems, printed } of found) expect([name, problems, passed.length > 0 ? '' : printed]).toEqual([name, [], '']);
  });
});
