/* What commands print where something is in their way. */
import { spawn, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { chat, startTestServer } from '../support/server.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

const main = new URL('../../src/main.ts', import.meta.url).pathname;

function start(home: string, args: readonly string[], stdio: StdioOptions) {
  const child = spawn(process.execPath, [...ofNode, main, ...args], { cwd: home, env: passedOn('HOME'), stdio });
  let errors = '';
  child.stderr!.on('data', (text: Buffer) => (errors += text.toString()));
  const ended = new Promise((resolve) => child.once('close', (code) => resolve({ code, errors })));
  return { child, stdout: child.stdout, ended };
}

async function served() {
  const home = mkdtempSync(join(tmpdir(), 'dragoman-output-'));
  const server = await startTestServer({ folder: home });
  onTestFinished(async () => {
    await server.close();
    rmSync(home, { recursive: true, force: true });
  });
  return { home, server };
}

test('a command whose reader leaves ends quietly', async () => {
  const { home, server } = await served();
  const { stdout, ended } = start(home, ['logs', '-f'], ['ignore', 'pipe', 'pipe']);
  await new Promise((resolve) => stdout!.once('data', resolve));
  stdout!.destroy();
  const asking = setInterval(() => void server.ask(chat, { model: 'built-in', messages: [{ role: 'user', content: 'hi' }] }), 500);
  onTestFinished(() => clearInterval(asking));
  expect(await ended).toEqual({ code: 1, errors: '' });
});

test.skipIf(process.platform !== 'linux')('a command whose output does not fit on the disk says so and fails', async () => {
  const { home } = await served();
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const { ended } = start(home, ['user', 'list'], ['ignore', full, 'pipe']);
  expect(await ended).toEqual({ code: 1, errors: 'dragoman: The output cannot be written: ENOSPC: no space left on device, write.\n' });
});

test('a start that fails after a signal to stop says why in words', async () => {
  const silent = createServer();
  onTestFinished(() => void silent.close());
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const home = mkdtempSync(join(tmpdir(), 'dragoman-output-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const url = `postgres://me:secret@127.0.0.1:${(silent.address() as AddressInfo).port}/d`;
  const connecting = once(silent, 'connection') as Promise<[Socket]>;
  const { child, ended } = start(home, ['serve', '--port', '0', '--database-url', url], ['ignore', 'pipe', 'pipe']);
  const [socket] = await connecting;
  child.kill('SIGTERM');
  silent.on('connection', (again: Socket) => again.destroy());
  socket.destroy();
  expect(await ended).toEqual({ code: 1, errors: expect.stringMatching(/^dragoman: The database .*\n$/) as string });
});
