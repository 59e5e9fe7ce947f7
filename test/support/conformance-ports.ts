/* Loaded before a program that listens on free ports: it gets those of PORTS, one after the other, so that the addresses are known before it starts. */
import { Server } from 'node:net';

const ports = (process.env['PORTS'] ?? '').split(',').map(Number);
const { listen } = Server.prototype;

Server.prototype.listen = function (this: Server, first: unknown, ...more: unknown[]) {
  return listen.apply(this, [first === 0 ? ports.shift() : first, ...more] as Parameters<typeof listen>);
} as typeof listen;
