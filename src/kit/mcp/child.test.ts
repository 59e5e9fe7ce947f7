import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

const path = new URL('child.ts', import.meta.url).href;
/** Ignores the end of its input and every signal that it can. */
const stubborn = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); process.stdout.write(JSON.stringify({ pid: process.pid }) + '\\n');`;

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('a program ends with the process that started it, even when that is killed', { timeout: 30_000 }, async () => {
  const starter = `
    const { childTransport } = await import(${JSON.stringify(path)});
    const transport = childTransport({ command: process.execPath, args: ['-e', ${JSON.stringify(stubborn)}], env: {} }, { bytes: 100000, values: 1000 });
    transport.onmessage = ({ pid }) => console.log(pid);
    await transport.start();`;
  const gateway = spawn(process.execPath, ['--input-type=module', '-e', starter], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [text] = (await once(gateway.stdout, 'data')) as [Buffer];
  const pid = Number(text.toString());
  expect(isThere(pid)).toBe(true);
  gateway.kill('SIGKILL');
  await once(gateway, 'exit');
  await expect.poll(() => isThere(pid), { timeout: 10_000 }).toBe(false);
});
