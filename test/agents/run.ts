/**
 * `node bin/run.js test/agents/run.ts AGENT FOLDER`: a coding agent that npm installed into FOLDER finishes a task with tools through the gateway, with the key of
 * one provider in the environment and nothing else set. The providers are scripted ones at their own host names. Ends with 1 and says why where it does not.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startVendors, type Vendors } from '../support/fakes/vendors/index.ts';
import { agents, type AgentCall, type CodingAgent, type Task } from './agents.ts';

/** The variable with which an operator names a provider, and a current model of it. */
const providers = [
  { variable: 'OPENAI_API_KEY', model: 'gpt-6-sol' },
  { variable: 'ANTHROPIC_API_KEY', model: 'claude-opus-5-5' },
  { variable: 'GEMINI_API_KEY', model: 'gemini-3-flash-preview' },
] as const;

/** @returns what went wrong */
async function withProvider(agent: CodingAgent, { variable, model }: (typeof providers)[number]): Promise<readonly string[]> {
  const vendors = await startVendors();
  const problems: string[] = [];
  try {
    const gateway = await startGateway(vendors, variable);
    try {
      problems.push(...(await tried(agent, { ...gateway, model }, vendors)));
    } finally {
      problems.push(...(await gateway.stop()), ...vendors.mishaps);
    }
  } finally {
    await vendors.close();
  }
  return problems.map((one) => `${name} with ${model}: ${one}`);
}

/** An agent writes a file with one tool, and reads it with the next. @returns what went wrong */
async function tried(agent: CodingAgent, { url, key, model }: Omit<Task, 'prompt'>, vendors: Vendors): Promise<readonly string[]> {
  const work = await mkdtemp(join(home, 'work-'));
  const file = join(work, 'made.txt');
  const reading = agent.read?.(file) ?? agent.shell(`cat ${file}`, model);
  const first = agent.shell(`echo made by ${model} | tee ${file}; echo '${asked(reading)}'`, model);
  const task: Task = { url, key, model, prompt: asked(first) };
  for (const [path, text] of Object.entries(agent.files?.(task) ?? {})) {
    const at = join(work, 'home', path);
    await mkdir(dirname(at), { recursive: true });
    await writeFile(at, text);
  }
  vendors.reset();
  const begun = performance.now();
  const { code, printed } = await ran(agent, task, work);
  console.log(`   ${name} with ${model}: ${vendors.requests.length} requests, ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  const wrote = await readFile(file, 'utf8').catch(() => '');
  const refused = vendors.requests.filter(({ status }) => status !== 200).map(({ rule, message }) => `refused: ${rule}: ${message}`);
  return [
    ...refused,
    ...(code === 0 ? [] : [`ended with ${code}: ${printed}`]),
    ...(wrote === `made by ${model}\n` ? [] : [`wrote ${JSON.stringify(wrote)}: ${printed}`]),
    ...(/The tool said:[^]*made by/.test(printed) ? [] : [`said ${printed}`]),
    ...(vendors.requests.length <= mostRequests ? [] : [`asked ${vendors.requests.length} times`]),
    ...(/\bretry|\berror\b/i.test(printed.replaceAll(task.prompt, '')) ? [`complained: ${printed}`] : []),
  ];
}

/** Three for the task; agents also ask for titles and the like. */
const mostRequests = 6;

const asked = (call: AgentCall) => agent?.asked?.(call) ?? `use the tool ${call.tool} with ${JSON.stringify(call.input)}`;

async function ran({ program, args, env, readsPrompt }: CodingAgent, task: Task, work: string) {
  const child = spawn(resolve(folder, program), args(task), {
    cwd: work,
    stdio: [readsPrompt ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: join(work, 'home'), NO_COLOR: '1', ...env?.(task) },
    timeout: 60_000,
  });
  child.stdin?.end(task.prompt);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece: Buffer) => void (printed += piece.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, printed };
}

/** The gateway as an operator starts it, with the key of one provider. */
async function startGateway({ proxy, caFile }: Vendors, variable: string) {
  const data = await mkdtemp(join(home, 'data-'));
  const key = 'k'.repeat(64);
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../bin/dragoman.js', import.meta.url)), 'serve'], {
    cwd: data,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: data,
      DRAGOMAN_DATA: data,
      DRAGOMAN_ADMIN_API_KEY: key,
      PORT: '0',
      HTTPS_PROXY: proxy,
      NO_PROXY: '127.0.0.1',
      NODE_EXTRA_CA_CERTS: caFile,
      [variable]: 'a-key',
    },
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => void (log += piece.toString()));
  const ended = once(child, 'exit');
  const url = await answeringAt(join(data, 'server.json'), () => child.exitCode === null);
  if (url === undefined) throw new Error(`The gateway did not start: ${log}`);
  return {
    url,
    key,
    /** @returns the lines of its log that tell of errors */
    async stop(): Promise<readonly string[]> {
      child.kill('SIGTERM');
      await ended;
      return log.split('\n').filter((line) => /"level":(?:[45]0|60|"(?:warn|error|fatal)")|\b(?:WARN|ERROR|FATAL)\b/.test(line));
    },
  };
}

async function answeringAt(file: string, isRunning: () => boolean): Promise<string | undefined> {
  for (let tries = 0; tries < 1200 && isRunning(); tries++) {
    try {
      const { url } = JSON.parse(await readFile(file, 'utf8')) as { url: string };
      if ((await fetch(`${url}/readyz`)).ok) return url;
    } catch {
      // not yet
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return undefined;
}

const [name = '', folder = ''] = process.argv.slice(2);
const agent = agents[name];
if (!agent) throw new Error(`The agents are ${Object.keys(agents).join(', ')}.`);
const home = await mkdtemp(join(tmpdir(), 'dragoman-agents-'));
try {
  const problems = (await Promise.all(providers.map((provider) => withProvider(agent, provider)))).flat();
  for (const one of problems) console.error(one);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
