import { spawn, type ChildProcess } from 'node:child_process';

/** Kills the process groups that it was told of when its standard input closes: this process may be killed itself, and then nothing else would end its programs. */
const program = `
const groups = new Set();
let rest = '';
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  for (const line of lines) line[0] === '+' ? groups.add(Number(line.slice(1))) : groups.delete(Number(line.slice(1)));
});
process.stdin.on('close', () => {
  for (const group of groups) try { process.kill(-group, 'SIGKILL'); } catch {}
  process.exit();
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
`;

let watchdog: ChildProcess | undefined;
const groups = new Set<number>();

/** Has a process group killed if this process ends before `unwatched`. */
export function watched(group: number): void {
  groups.add(group);
  if (watchdog) watchdog.stdin?.write(`+${group}\n`);
  else watchdog = started();
}

export function unwatched(group: number): void {
  groups.delete(group);
  watchdog?.stdin?.write(`-${group}\n`);
}

/** One for all programs. It keeps no process alive. */
function started(): ChildProcess {
  const child = spawn(process.execPath, ['-e', program], { env: {}, stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  const gone = () => {
    if (watchdog === child) watchdog = undefined;
  };
  child.once('exit', gone).once('error', gone);
  child.stdin.on('error', gone);
  child.stdin.write([...groups].map((group) => `+${group}\n`).join(''));
  child.unref();
  (child.stdin as typeof child.stdin & { unref?: () => void }).unref?.();
  return child;
}
