import { request } from 'node:http';
import { afterAll, afterEach } from 'vitest';
import { openLine } from './fakes/vendors/line.ts';
import { startUpstream, type Upstream } from './fakes/upstream/index.ts';
import { startTestServer, type TestServer } from './server.ts';

/**
 * Starts a scripted upstream that answers at the host names of vendors, and a server that finds them there. The script is cleared after each test.
 *
 * @param hosts that the settings name with `https`
 * @param settings without `outbound`; plain addresses of the upstream are found as they are
 */
export async function scriptedHosts(
  hosts: readonly string[],
  settings: (upstream: Upstream) => string,
): Promise<{ readonly upstream: Upstream; readonly server: TestServer }> {
  const upstream = await startUpstream();
  const line = await openLine(hosts, (asked, answer) => {
    const passed = request(`${upstream.url}${asked.url}`, { method: asked.method!, headers: asked.headers }, (given) => {
      answer.writeHead(given.statusCode!, given.headers);
      given.on('error', () => answer.destroy()).pipe(answer);
    });
    passed.on('error', () => answer.destroy());
    asked.pipe(passed);
  });
  const server = await startTestServer({ yaml: `outbound: { proxy: "${line.proxy}", noProxy: "127.0.0.1", caFile: "${line.caFile}" }\n${settings(upstream)}` });
  afterAll(async () => {
    await server.close();
    await line.close();
    await upstream.close();
  });
  afterEach(() => upstream.reset());
  return { upstream, server };
}
