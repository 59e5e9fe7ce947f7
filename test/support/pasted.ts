import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Pasted {
  /** Exit code of its last command; `undefined` for what the shell did not get to, after a quote that is not closed for example. */
  readonly status: number | undefined;
  readonly stdout: string;
}

export interface Session {
  readonly blocks: readonly Pasted[];
  /** Of the whole session, with the prompts and, in bash, with what was typed. */
  readonly stderr: string;
}

/** The shells as they are on a machine where nobody has configured them: an interactive zsh takes `#` for a word. */
export const shells = { bash: ['--norc', '--noprofile', '-i'], zsh: ['-f', '-i'] } as const;

/** Printed after each text, with its exit code. */
const end = '=end-of-the-block=';

/** Types texts into one interactive shell, one after the other, as a user who pastes them. */
export async function paste(
  shell: keyof typeof shells,
  texts: readonly string[],
  { cwd, env, seconds }: { readonly cwd: string; readonly env: Readonly<Record<string, string>>; readonly seconds: number },
): Promise<Session> {
  const child = spawn(shell, shells[shell], { cwd, env, timeout: seconds * 1000, killSignal: 'SIGKILL' });
  const read = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (read[name] += text));
  child.stdin.on('error', () => {}); // a shell that ended takes no more
  child.stdin.end(texts.map((text) => `${text}\necho "${end} $?"\n`).join(''));
  await once(child, 'close');
  const ends = [...read.stdout.matchAll(new RegExp(`([^]*?)${end} (\\d+)\\n`, 'g'))].map(([, stdout = '', status]) => ({ status: Number(status), stdout }));
  return { blocks: texts.map((_, at) => ends[at] ?? { status: undefined, stdout: '' }), stderr: read.stderr };
}
