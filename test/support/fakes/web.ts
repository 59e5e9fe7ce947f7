import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Outside } from '#kit/net/guarded-dial';
import { ownPort } from '../ports.ts';

/** The smallest image there is. */
export const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==', 'base64');

/** A fake internet host, with the requests and the number of connections that it got. */
export interface Site {
  readonly port: number;
  readonly hits: number;
  readonly requests: readonly IncomingMessage[];
  answer(how: (request: IncomingMessage, response: ServerResponse) => void): void;
  reset(): void;
  close(): Promise<void>;
}

export const sendPng = (_request: IncomingMessage, response: ServerResponse): void => void response.writeHead(200, { 'content-type': 'image/png' }).end(png);

/** Listens on an address of this machine, on a free port unless one is given. */
export async function openSite(address = '127.0.0.1', port = 0): Promise<Site> {
  let hits = 0;
  let requests: IncomingMessage[] = [];
  let how = sendPng;
  const server = createServer((request, response) => {
    requests.push(request);
    request.resume();
    response.on('error', () => {});
    how(request, response);
  });
  server.on('connection', () => hits++);
  server.listen(port || (await ownPort()), address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get hits() {
      return hits;
    },
    get requests() {
      return requests;
    },
    answer: (next) => void (how = next),
    reset() {
      hits = 0;
      requests = [];
      how = sendPng;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A public IP address for a hostile host in tests. */
export const publicAddress = '93.184.216.34';

/** Fake DNS and routing: `names` resolves names, and the one public address is routed to `home`. */
export function outsideOf(names: (host: string) => readonly string[], home: string): Outside & { readonly asked: string[]; readonly dialled: string[] } {
  const asked: string[] = [];
  const dialled: string[] = [];
  return {
    asked,
    dialled,
    async resolve(host) {
      asked.push(host);
      return names(host);
    },
    at(address) {
      dialled.push(address);
      return address === publicAddress ? home : address;
    },
  };
}
