import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

/** Runs this with `lines` on stderr, into a pipe that is read only when it says `read`. */
async function writtenBy(script: string): Promise<Buffer> {
  const program = `
    const { logLines } = await import(${JSON.stringify(new URL('log-lines.ts', import.meta.url).href)});
    const { default: fs } = await import('node:fs');
    const { syncBuiltinESMExports } = await import('node:module');
    const leftOut = (count) => 'left out: ' + count + '\\n';
    ${script}`;
  const child = spawn(process.execPath, ['--conditions=dragoman-source', '--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said: Buffer[] = [];
  const ended = once(child, 'exit');
  child.stdout.once('data', () => child.stderr.on('data', (piece: Buffer) => said.push(piece)));
  await ended;
  return Buffer.concat(said);
}

test('lines that were left out while nobody read are counted, and one line tells it where they would stand', async () => {
  const text = await writtenBy(`
    const lines = logLines(2, { pieceBytes: 1000, mostWaiting: 200_000, leftOut });
    const line = (at) => String(at).padStart(9, '0') + '\\n';
    for (let at = 0; at < 40_000; at++) lines.add(line(at));
    process.stdout.write('read');
    await lines.written();
    lines.add('after\\n');
    await lines.written();`);
  const lines = text.toString().trimEnd().split('\n');
  const told = lines.findIndex((line) => line.startsWith('left out: '));
  expect(told).toBeGreaterThan(19_000);
  expect(told + Number(lines[told]!.slice('left out: '.length))).toBe(40_000);
  expect(lines.slice(told + 1)).toEqual(['after']);
}, 120_000);

test('a piece that is written at once is measured in bytes, whatever the alphabet', async () => {
  const text = await writtenBy(`
    const sizes = [];
    const write = fs.write;
    fs.write = (descriptor, bytes, told) => (sizes.push(bytes.length), write(descriptor, bytes, told));
    syncBuiltinESMExports();
    process.stdout.write('read');
    const lines = logLines(2, { pieceBytes: 4096, mostWaiting: 1e6, leftOut });
    for (let at = 0; at < 500; at++) lines.add('ж'.repeat(99) + '\\n');
    await lines.written();
    lines.add(JSON.stringify(sizes) + '\\n');
    await lines.written();`);
  const sizes = JSON.parse(text.toString().trimEnd().split('\n').at(-1)!) as number[];
  expect(sizes.reduce((sum, size) => sum + size)).toBe(500 * 199);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4096);
}, 120_000);
