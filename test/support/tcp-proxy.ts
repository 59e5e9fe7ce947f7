import { connect, createServer, type Socket } from 'node:net';
import { sql } from 'kysely';
import { onTestFinished } from 'vitest';
import type { TestDatabase } from './databases.ts';
import { ownPort } from './ports.ts';

/** A TCP proxy that a test can cut or slow down. */
export interface TcpProxy {
  readonly port: number;
  /** The server's address through the proxy. */
  readonly url: string;
  /** `on` forwards bytes; `refuse` cuts connections and accepts no new ones; `hang` accepts everything and forwards nothing; `deaf` forwards requests, but no answers. */
  set(state: LineState): Promise<void>;
  /** Delays answers by these milliseconds from now on. */
  delay(milliseconds: number): void;
}

type LineState = 'on' | 'refuse' | 'hang' | 'deaf';

/** A proxy to the database at this address. */
export async function lineTo(databaseUrl: string): Promise<TcpProxy> {
  const url = new URL(databaseUrl);
  const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  return { ...proxy, url: url.href };
}

async function tcpProxy(target: { host: string; port: number }): Promise<Omit<TcpProxy, 'url'>> {
  const sockets = new Set<Socket>();
  let state: LineState = 'on';
  let late = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    keep(near);
    const far = connect(target);
    keep(far);
    near.on('data', (bytes) => (state === 'on' || state === 'deaf') && far.write(bytes));
    const answer = (bytes: Buffer) => state === 'on' && near.writable && near.write(bytes);
    far.on('data', (bytes: Buffer) => (late > 0 ? setTimeout(answer, late, bytes) : answer(bytes)));
    near.once('close', () => far.destroy());
    far.once('close', () => state !== 'hang' && state !== 'deaf' && near.destroy());
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = () => new Promise<void>((resolve) => (server.listening ? server.close(() => resolve()) : resolve()));
  const port = await ownPort();
  await listen(port);
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await close();
  });
  return {
    port,
    delay: (milliseconds) => void (late = milliseconds),
    async set(next) {
      state = next;
      if (next !== 'refuse') return server.listening ? undefined : listen(port);
      const closed = close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A store behind a proxy, with a table `t`; `told` is what it has logged. */
export async function behindProxy({ place, open }: TestDatabase) {
  const { folder, databaseUrl } = await place();
  const proxy = await lineTo(databaseUrl!);
  const told: string[] = [];
  const tell = (_: object, text: string) => void told.push(text);
  const store = await open({ folder, databaseUrl: proxy.url, log: { info: tell, warn: tell, error: tell } });
  await sql`create table t (n integer)`.execute(store.db);
  return { store, proxy, told, direct: databaseUrl!, insert: () => sql`insert into t values (1)`.execute(store.db) };
}

/** The outcome, `answered` or the fault's code, and how long it took. */
export async function timed(work: () => Promise<unknown>): Promise<{ outcome: unknown; milliseconds: number }> {
  const since = performance.now();
  const outcome = await work().then(
    () => 'answered',
    (error: { code?: unknown }) => error.code,
  );
  return { outcome, milliseconds: performance.now() - since };
}
