import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { childTransport } from './child.ts';

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

test('a program ends with the process that started it, even when that is killed', { timeout: 120_000 }, async () => {
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
  await expect.poll(() => isThere(pid), { timeout: 30_000 }).toBe(false);
});

test('a line that would take long to parse is left out, and the program goes on', { timeout: 120_000 }, async () => {
  const code = `for (const line of ['{"a":' + '['.repeat(500000), '[{}]', 'started', JSON.stringify({ a: Array(2000).fill(0) }), '{"id":1}']) console.log(line); setInterval(() => {}, 1000);`;
  const transport = childTransport({ command: process.execPath, args: ['-e', code], env: {} }, { bytes: 1_000_000, values: 1000 });
  onTestFinished(() => transport.close());
  const [messages, errors]: [unknown[], string[]] = [[], []];
  Object.assign(transport, {
    onmessage: (message: unknown) => void messages.push(message),
    onerror: ({ message }: Error) => void errors.push(message),
  });
  await transport.start();
  await expect.poll(() => messages, { timeout: 30_000 }).toEqual([{ id: 1 }]);
  expect(errors).toEqual([
    'The text is nested deeper than 64 levels.',
    'Batches of messages are not taken.',
    expect.stringContaining('not valid JSON'),
    'The text has more than 1000 values.',
  ]);
});
