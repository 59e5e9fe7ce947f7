import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { ProcessTask } from './store-process.ts';
import { ofNode } from './surroundings.ts';

export interface StoreProcess {
  readonly pid: number;
  /** The lines it has printed. */
  readonly said: readonly string[];
  /** Waits for a line with this beginning. */
  until(beginning: string): Promise<string>;
  /** Kills it, as kill -9 does; what is left in its pipe is still read. */
  kill(): Promise<void>;
  readonly ended: Promise<number | null>;
}

/** A process with a store; it is killed when the test ends. */
export function storeProcess(task: ProcessTask): StoreProcess {
  const file = fileURLToPath(new URL('store-process.ts', import.meta.url));
  const child = spawn(process.execPath, [...ofNode, file, JSON.stringify(task)], { stdio: ['ignore', 'pipe', 'inherit'] });
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
