/** The conformance tests of the Model Context Protocol: https://github.com/modelcontextprotocol/conformance */
import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url));
const ports = new URL('./conformance-ports.ts', import.meta.url).href;

/** What was found of one scenario. */
export interface Found {
  readonly passed: readonly string[];
  /** Checks that failed, or of which the tests warn, with what they say. */
  readonly problems: readonly string[];
  /** All that was printed. */
  readonly printed: string;
}

interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED';
  readonly description: string;
  readonly errorMessage?: string;
}

/** The names of all scenarios of one side. */
export async function scenariosOf(side: 'client' | 'server'): Promise<readonly string[]> {
  const { printed } = await ran(['list', `--${side}`]);
  return [...printed.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name!);
}

/** @param listens ports that it listens on, in place of free ones */
export async function conforms(side: 'client' | 'server', scenario: string, args: readonly string[], listens: readonly number[] = []): Promise<Found> {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-conformance-'));
  try {
    const { printed } = await ran([side, '--scenario', scenario, '--output-dir', folder, ...args], listens);
    const [file] = globSync('**/checks.json', { cwd: folder });
    const checks = file === undefined ? [] : (JSON.parse(await readFile(join(folder, file), 'utf8')) as readonly Check[]);
    return {
      passed: checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id),
      problems: checks
        .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
        .map(({ id, description, errorMessage }) => `${id}: ${errorMessage ?? description}`),
      printed,
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

function ran(args: readonly string[], listens: readonly number[] = []): Promise<{ readonly printed: string }> {
  const env = { ...process.env, PORTS: listens.join(',') };
  return new Promise((resolve) => {
    execFile(process.execPath, ['--import', ports, program, ...args], { env, timeout: 180_000, maxBuffer: 2 ** 24 }, (_error, out, err) =>
      resolve({ printed: out + err }),
    );
  });
}
