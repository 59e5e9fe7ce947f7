import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { paste, shells, type Session } from '../support/pasted.ts';
import { complaint, readFrom } from '../support/settings-folder.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

/**
 * README.md and the pages of docs/ as their readers use them. The blocks `sh` of a page are pasted into a bash and into a zsh, one after the other, in a folder
 * that looks like the repository, beside a server that has just been started for the first time. A block `js` is run by node in that folder, and one with the name `try.mjs` is saved there. A block `text` or
 * `json` after either is what it prints. A block `yaml` is a whole `dragoman.yaml`; blocks whose fence has a file name (```` ```yaml librechat.yaml ````) belong
 * to another program.
 */

const root = join(import.meta.dirname, '..', '..');
const pages = globSync(['README.md', 'docs/*.md', 'bench/README.md'], { cwd: root }).toSorted();
const key = 'k'.repeat(64);
const has = (program: string) => spawnSync(program, ['-c', 'exit 0']).status === 0;
const present = (Object.keys(shells) as (keyof typeof shells)[]).filter(has);

/** Programs that would install something, never end, or need something that is not here. They record how they were called. */
const standIns = ['npm', 'git', 'claude', 'codex', 'gemini', 'opencode', 'pip', 'sudo', 'pg_dump', 'pg_restore', 'openssl'];

interface Block {
  readonly language: string;
  readonly file: string;
  readonly text: string;
}

const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

const blocksOf = (page: string): readonly Block[] =>
  [...textOf(page).matchAll(/^```(\w*)[ \t]*(\S*)\n([^]*?)^```$/gm)].map(([, language = '', file = '', text = '']) => ({ language, file, text }));

/** What is typed, and what the page shows as printed. */
interface Step {
  readonly typed: string;
  readonly shown?: string;
  /** Saved as `try.mjs` before it is typed. */
  readonly saved?: string;
}

function stepsOf(blocks: readonly Block[]): readonly Step[] {
  return blocks.flatMap(({ language, file, text }, at): Step[] => {
    const [before, next] = [blocks[at - 1], blocks[at + 1]];
    const shown = next && ['text', 'json'].includes(next.language) && !next.file ? { shown: next.text } : {};
    if (language === 'js' && !file) return [{ typed: 'node try.mjs', saved: text, ...shown }];
    return language === 'sh' ? [{ typed: text.trimEnd(), ...(before?.file === 'try.mjs' ? { saved: before.text } : {}), ...shown }] : [];
  });
}

/** Without what is different each time. */
const lasting = (text: string) =>
  text
    .trim()
    .replaceAll(/\b(chatcmpl|resp|msg|req|dgm)_?-?[\w-]{12,}/g, '$1…')
    .replaceAll(/"created":\s*\d+/g, '"created":0')
    .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+Z?/g, 'TIME');

let folder: string;
let upstream: Upstream;
let server: ChildProcess;
let url: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-pages-'));
  upstream = await startUpstream();
  await standIn(join(folder, 'programs'));
  server = spawn(process.execPath, [...ofNode, join(root, 'src', 'main.ts'), 'serve'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...passedOn(),
      PORT: '0',
      DRAGOMAN_DATA: join(folder, 'data'),
      DRAGOMAN_ADMIN_API_KEY: key,
      OPENAI_API_KEY: 'sk-documentation',
      OPENAI_BASE_URL: `${upstream.url}/v1`,
    },
  });
  url = await startedAt(join(folder, 'data', 'server.json'));
}, 120_000);

afterAll(async () => {
  if (server.exitCode === null) {
    server.kill('SIGKILL');
    await once(server, 'exit');
  }
  await upstream.close();
  await rm(folder, { recursive: true, force: true });
});

async function startedAt(file: string): Promise<string> {
  for (;;) {
    try {
      const { url } = JSON.parse(await readFile(file, 'utf8')) as { readonly url: string };
      if ((await fetch(`${url}/readyz`)).ok) return url;
    } catch (error) {
      if (server.exitCode !== null) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function standIn(programs: string): Promise<void> {
  await mkdir(programs);
  for (const name of standIns) {
    await writeFile(join(programs, name), `#!/bin/sh\nfor word in ${name} "$@" --; do printf '%s\\037' "$word" >> "$CALLS"; done\n`);
    await chmod(join(programs, name), 0o755);
  }
}

/** Another folder that looks like the repository, for one page in one shell. */
async function workplace(name: string): Promise<string> {
  const place = join(folder, name);
  await mkdir(place, { recursive: true });
  for (const entry of ['bin', 'node_modules', 'package.json']) await symlink(join(root, entry), join(place, entry));
  await symlink(join(folder, 'data'), join(place, 'data'));
  return place;
}

/** The second shell meets what the first has made: its users and teams have other names. */
const asTyped = (text: string, shell: string) =>
  text
    .replaceAll('127.0.0.1:8080', new URL(url).host)
    .replaceAll('dgm_…', key)
    .replaceAll('sk-…', 'sk-documentation')
    .replaceAll(/\b(ada|grace|mary|order-17|search-team|press-team)\b/g, `$1-${shell}`);

async function session(page: string, shell: keyof typeof shells, steps: readonly Step[]): Promise<Session & { readonly calls: readonly string[] }> {
  const cwd = await workplace(`${shell}-${page.replaceAll(/\W/g, '-')}`);
  const calls = join(cwd, 'calls');
  await writeFile(calls, '');
  const typed: string[] = [];
  for (const [at, { saved, typed: text }] of steps.entries()) {
    if (saved !== undefined) await writeFile(join(cwd, `try-${at}.mjs`), asTyped(saved, shell));
    typed.push(asTyped(text, shell).replace('try.mjs', `try-${at}.mjs`));
  }
  const env = {
    PATH: [join(folder, 'programs'), dirname(process.execPath), process.env['PATH']].join(delimiter),
    HOME: cwd,
    CALLS: calls,
    DRAGOMAN_DATA: join(folder, 'data'),
    NODE_COMPILE_CACHE: join(folder, 'compiled'), // shared, since each session has a home of its own
    ...(page === 'README.md' ? {} : { KEY: key }),
  };
  const done = await paste(shell, typed, { cwd, env, seconds: 300 });
  const words = (await readFile(calls, 'utf8')).split('\u001f--\u001f').filter(Boolean);
  return { ...done, calls: words.map((one) => one.replaceAll('\u001f', ' ')) };
}

test.each(Object.keys(shells))('%s is installed where everything must hold', (shell) => {
  expect(process.env['CI'] === undefined || has(shell)).toBe(true);
});

/** The pages that have something to paste, in each shell. */
const pasted = pages.flatMap((page) => {
  const steps = stepsOf(blocksOf(page));
  return steps.length > 0 && !page.startsWith('bench') ? present.map((shell) => ({ page, shell, steps })) : [];
});

test.each(pasted)('what $page has to paste works in $shell, and prints what the page shows', { timeout: 330_000 }, async ({ page, shell, steps }) => {
  const { blocks, stderr, calls } = await session(page, shell, steps);
  const failed = blocks.flatMap(({ status, stdout }, at) =>
    status === 0 && !/"error":(?!null)/.test(stdout) ? [] : [{ ...steps[at], status, stdout, stderr }],
  );
  expect(failed).toEqual([]);
  const shown = steps.flatMap((step, at) => (step.shown === undefined ? [] : [{ typed: step.typed, printed: lasting(asTyped(step.shown, shell)), at }]));
  expect(shown.map(({ typed, at }) => ({ typed, printed: lasting(blocks[at]!.stdout), at }))).toEqual(shown);
  expect(calls.filter((call) => /[#…?]/.test(call))).toEqual([]);
});

describe.each(pages)('%s', (page) => {
  const blocks = blocksOf(page);

  test('each block for a shell is one command, without a comment, an address that a shell would expand, or a package of somebody else', () => {
    const commands = blocks
      .filter(({ language }) => language === 'sh')
      .map(({ text }) =>
        text
          .replaceAll(/'[^']*'|"[^"]*"/g, 'quoted')
          .replaceAll('\\\n', ' ')
          .trim(),
      );
    expect(commands.filter((text) => /\n|&&|[;?#'"]|\bnpx\b|npm (?:i|install|exec)\b(?!.*\.tgz)/.test(text))).toEqual([]);
  });

  test('no block has the number of a user, which depends on what was pasted before', () => {
    expect(blocks.filter(({ language, text }) => language === 'sh' && /users\/\d|[a-z]Id=\d|"members\\?": \[\d/.test(text))).toEqual([]);
  });

  test('each block for dragoman.yaml is a settings file', () => {
    const files = blocks.filter(({ language, file }) => language === 'yaml' && file === '').map(({ text }) => text);
    const env = (text: string) => Object.fromEntries(Array.from(text.matchAll(/\$\{(\w+)\}/g), ([, name]) => [name!, name!]));
    expect(files.map((text) => complaint(() => readFrom(text, { env: env(text) })))).toEqual(files.map(() => undefined));
  });

  test('each block says what it is', () => {
    expect(blocks.filter(({ language }) => !['sh', 'js', 'python', 'text', 'json', 'yaml', 'toml', 'ini', 'nginx', 'caddy'].includes(language))).toEqual([]);
  });
});

test('the addresses for SDKs in the README are those of the server', async () => {
  const bases = [...textOf('README.md').matchAll(/^\| .*\| `(http:\/\/127\.0\.0\.1:8080[^`]*)` \|$/gm)].map(([, base]) =>
    base!.replace('127.0.0.1:8080', new URL(url).host),
  );
  expect(bases).toHaveLength(3);
  const [openai, anthropic, google] = bases;
  const json = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const ask = async (address: string, body: object) => (await fetch(address, { method: 'POST', headers: json, body: JSON.stringify(body) })).status;
  const messages = [{ role: 'user', content: 'hello' }];
  expect(await ask(`${openai}/chat/completions`, { model: 'built-in', messages })).toBe(200);
  expect(await ask(`${anthropic}/v1/messages`, { model: 'built-in', max_tokens: 9, messages })).toBe(200);
  expect(await ask(`${google}/v1beta/models/built-in:generateContent`, { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] })).toBe(200);
});
