/** Where the vendors are found: a proxy for CONNECT that speaks TLS for all of their hosts, and plain addresses of 127.0.0.1. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certified } from './authority.ts';

export interface Line {
  /** For `outbound.proxy`. */
  readonly proxy: string;
  /** For `outbound.caFile`. */
  readonly caFile: string;
  /** Opens a plain address. @returns `http://127.0.0.1:port` */
  plain(listener: RequestListener): Promise<string>;
  close(): Promise<void>;
}

/** @param answer for requests to these hosts, whose `host` header says which */
export async function openLine(hosts: readonly string[], answer: RequestListener): Promise<Line> {
  const { ca, cert, key } = certified(hosts);
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-vendors-'));
  const caFile = join(folder, 'authority.pem');
  await writeFile(caFile, ca);
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  const kept = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  };
  const listen = async (server: Server) => {
    server.on('connection', kept);
    server.keepAliveTimeout = 0;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  const behindTls = createHttpsServer({ cert, key, keepAliveTimeout: 0 }, answer);
  behindTls.on('tlsClientError', (_, socket) => void socket.destroy());
  const door = createHttpServer((_, response) => void response.writeHead(405).end());
  door.on('connect', ({ url = '' }, socket: Socket, head: Buffer) => {
    if (!hosts.includes(url.replace(/:443$/, ''))) {
      socket.end('HTTP/1.1 502 Nobody of that name\r\n\r\n');
      return;
    }
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    if (head.length > 0) socket.unshift(head);
    behindTls.emit('connection', socket);
  });
  const proxy = await listen(door);
  return {
    proxy,
    caFile,
    plain: (listener) => listen(createHttpServer(listener)),
    async close() {
      const closed = servers.map((server) => once(server, 'close'));
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
      await rm(folder, { recursive: true });
    },
  };
}
