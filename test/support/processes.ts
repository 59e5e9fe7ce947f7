import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { ProcessTask } from './store-process.ts';

export interface StoreProcess {
  readonly pid: number;
  /** What it has said, by lines. */
  readonly said: readonly string[];
  /** Waits until it has said a line that begins so. */
  until(beginning: string): Promise<string>;
  /** As kill -9 does; what was under way on its pipe is still read. */
  kill(): Promise<void>;
  readonly ended: Promise<number | null>;
}

/** A process with a store; it ends with the test at the latest. */
export function storeProcess(task: ProcessTask): StoreProcess {
  const file = fileURLToPath(new URL('store-process.ts', import.meta.url));
  const child = spawn(process.execPath, ['--conditions=source', file, JSON.stringify(task)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said: string[] = [];
  const listeners = new Set<() => void>();
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    said.push(...lines);
    for (const listener of listeners) listener();
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(kill);
  return {
    pid: child.pid!,
    said,
    kill,
    ended,
    until: (beginning) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const line = said.find((one) => one.startsWith(beginning));
          if (line !== undefined) resolve(line);
        };
        listeners.add(look);
        look();
        void ended.then(() => reject(new Error(`It ended without saying ${beginning}: ${said.slice(-3).join(' | ')}`)));
      }),
  };
}
