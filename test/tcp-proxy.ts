import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { sql } from 'kysely';
import { onTestFinished } from 'vitest';
import type { TestDatabase } from './databases.ts';

/** A line between a client and a server that a test can cut. */
export interface TcpProxy {
  readonly port: number;
  /** `on` passes bytes; `refuse` cuts what there is and takes nothing new; `hang` takes everything and says nothing. */
  set(state: 'on' | 'refuse' | 'hang'): Promise<void>;
}

async function tcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let state: 'on' | 'refuse' | 'hang' = 'on';
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    keep(near);
    const far = connect(target);
    keep(far);
    near.on('data', (bytes) => state === 'on' && far.write(bytes));
    far.on('data', (bytes) => state === 'on' && near.write(bytes));
    near.once('close', () => far.destroy());
    far.once('close', () => state !== 'hang' && near.destroy());
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = () => new Promise<void>((resolve) => (server.listening ? server.close(() => resolve()) : resolve()));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await close();
  });
  return {
    port,
    async set(next) {
      state = next;
      if (next !== 'refuse') return server.listening ? undefined : listen(port);
      const closed = close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A store whose line to the server can be cut, with a table `t`; `told` is what it has logged. */
export async function behindProxy({ place, open }: TestDatabase) {
  const { folder, databaseUrl } = await place();
  const url = new URL(databaseUrl!);
  const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  const told: string[] = [];
  const tell = (_: object, text: string) => void told.push(text);
  const store = await open({ folder, databaseUrl: url.href, log: { info: tell, warn: tell, error: tell } });
  await sql`create table t (n integer)`.execute(store.db);
  return { store, proxy, told, direct: databaseUrl!, insert: () => sql`insert into t values (1)`.execute(store.db) };
}

/** What came of it, `answered` or the code of the fault, and after how long. */
export async function timed(work: () => Promise<unknown>): Promise<{ outcome: unknown; milliseconds: number }> {
  const since = performance.now();
  const outcome = await work().then(
    () => 'answered',
    (error: { code?: unknown }) => error.code,
  );
  return { outcome, milliseconds: performance.now() - since };
}
