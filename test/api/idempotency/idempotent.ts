/** What the tests of idempotency keys share. */
import { onTestFinished } from 'vitest';
import type { Place } from '../../support/databases.ts';
import { startUpstream, type Upstream } from '../../support/fakes/upstream/index.ts';
import { startTestServer, type TestServer, type TestServerSettings } from '../../support/server.ts';

export const request = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two three four five six seven eight' }] };
export const streamed = { ...request, stream: true };
/** With an idempotency key. */
export const keyed = (key: string, init: RequestInit = {}): RequestInit => ({ ...init, headers: { 'idempotency-key': key } });

/** An upstream for a test, closed with it. */
export async function scripted(): Promise<Upstream> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  return upstream;
}

/** A server for a test, closed with it, that leaves no target alone for having failed. */
export async function server(place: Place, upstream: Upstream, settings: TestServerSettings = {}): Promise<TestServer> {
  const opened = await startTestServer({ ...place, upstream: upstream.url, ...settings, yaml: `routing: { cooldownSeconds: 0 }\n${settings.yaml ?? ''}` });
  onTestFinished(() => opened.close().catch(() => {}));
  return opened;
}

export const isReplayed = (answer: Response) => answer.headers.get('x-dragoman-replayed') === 'true';
