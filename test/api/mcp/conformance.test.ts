/* The conformance tests of the protocol: our client of MCP servers, and the gateway as a server. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { conforms, freePorts, scenariosOf } from '../../support/conformance.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { person, visitorsOf, type Person } from '../native/visitors.ts';

const servers = '/server/mine/mcp-servers';

/** What a user has the gateway do at the server of a scenario. */
async function used(ask: Person['ask'], url: string, scenario: string): Promise<string> {
  const said: unknown[] = [];
  const { body } = await ask('POST', servers, { name: 's', url });
  const at = `${servers}/${body['id'] as number}`;
  const tried = async (call: object) => {
    const { body: result } = await ask('POST', `${at}/test`, call);
    said.push(result);
    return result;
  };
  const signedIn = async () => {
    const { body: begun } = await ask('POST', `${at}/oauth`);
    said.push(begun);
    if (typeof begun['url'] !== 'string') return false;
    const back = await fetch(begun['url'], { redirect: 'manual' });
    said.push((await fetch(back.headers.get('location')!)).status);
    return true;
  };
  const call = { tool: toolOf[scenario] ?? 'test-tool', arguments: scenario === 'tools_call' ? { a: 5, b: 3 } : {} };
  let result = await tried({});
  for (let tries = 0; tries < 4; tries++) {
    if (result['state'] === 'sign-in' && !(await signedIn())) break;
    result = await tried(call);
    if (result['state'] !== 'sign-in') break;
  }
  await ask('DELETE', at);
  return JSON.stringify(said);
}

const toolOf: Readonly<Record<string, string>> = { tools_call: 'add_numbers', 'sse-retry': 'test_reconnection' };

describe('the client of MCP servers', () => {
  let gateway: TestServer;
  let ports: readonly number[];
  let driver: string;
  let names: readonly string[];
  beforeAll(async () => {
    names = await scenariosOf('client');
    ports = await freePorts(names.length * 3);
    gateway = await startTestServer({ yaml: `mcp: { approval: never }\noutbound: { allow: ${JSON.stringify(ports.map((port) => `http://localhost:${port}`))} }\n` });
    const all = visitorsOf(gateway);
    const server = createServer(async (request, response) => {
      const { scenario, url } = (await json(request)) as { scenario: string; url: string };
      response.end(await used((await person(all)).ask, url, scenario));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    driver = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => gateway.close());

  test('all', { timeout: 200_000 }, async () => {
    const command = `${process.execPath} ${fileURLToPath(new URL('../../support/conformance-command.ts', import.meta.url))} ${driver}`;
    for (const [at, name] of names.entries()) {
      const found = await conforms('client', name, ['--command', command], ports.slice(at * 3, at * 3 + 3));
      console.log(name, found.passed.length, found.problems, found.problems.length || !found.passed.length? found.printed.match(/Stdout:[^]*?\n\n|Client exited.*|\[\{.*/)?.[0]: '');
      if (found.passed.length === 0) console.log(found.printed.slice(0, 3000));
    }
  });
});
void onTestFinished; void expect;
