/** What a step of an agent's run costs besides its answer of the model, with a call of a tool; and the memory of runs that wait for their users. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { key } from './contestants/contestant.ts';
import { open, type Contestant } from './contestants/index.ts';
import { cpuTime, residentMegabytes } from './processes.ts';
import { atMost, type Question, type Row } from './question.ts';
import type { Rig } from './rig.ts';
import { median } from './rounds.ts';

/** Answers of the model in a run; all but the last call the tool. */
const stepsOfRun = 25;
/** Runs of a turn, and so many of them at once. */
const [runsOfTurn, atOnce] = [24, 4];
const waitingRuns = 500;
const restMilliseconds = 8000;

export const runs: Question = {
  name: 'runs',
  async ask(rig) {
    const { port, close } = await openModel();
    const rows: Row[] = [];
    for (const name of rig.present(['dragoman', 'dragoman, embedded'])) {
      const contestant = await open(name, { folder: rig.place(), upstreamPort: port, postgres: rig.postgres, before: rig.options.before });
      rows.push(await steps(rig, contestant, port), await waiting(contestant, port));
      await contestant.stop();
    }
    close();
    return rows;
  },
};

async function steps(rig: Rig, contestant: Contestant, port: number): Promise<Row> {
  const agent = await agentWith(contestant, port, 'GET');
  const run = async () => {
    const { execution_status: state, error } = await executed(contestant, agent);
    if (state !== 'completed') throw new Error(`A run was ${state}: ${String(error)}`);
  };
  const answer = () => asked(contestant, contestant.path, { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Go.' }], stream: true });
  const step = async () => (await turn(contestant, runsOfTurn, run)) / (runsOfTurn * stepsOfRun);
  const model = async () => (await turn(contestant, runsOfTurn * stepsOfRun, answer)) / (runsOfTurn * stepsOfRun);
  for (let warm = 0; warm < 3; warm++) await step().then(model); // compiles what they need
  const milliseconds: number[] = [];
  const models: number[] = [];
  for (let round = 0; round < rig.options.rounds; round++) {
    models.push(await model());
    milliseconds.push((await step()) - models.at(-1)!);
  }
  const value = median(milliseconds);
  const note = `${Math.min(...milliseconds).toFixed(2)} to ${Math.max(...milliseconds).toFixed(2)}, besides ${median(models).toFixed(2)} for the model`;
  const bars = contestant.name === 'dragoman' ? [atMost('≤ 3 ms', value, 3)] : [];
  return { what: 'a step of a run, CPU ms', who: contestant.name, value, note, bars };
}

/** Does something so many times. @returns milliseconds of CPU time of the gateway */
async function turn(contestant: Contestant, times: number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuMilliseconds(contestant);
  let left = times;
  const one = async () => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  await setTimeout(600); // what is written a moment later is part of it
  return cpuMilliseconds(contestant) - before;
}

async function waiting(contestant: Contestant, port: number): Promise<Row> {
  const agent = await agentWith(contestant, port, 'POST');
  for (let at = 0; at < 50; at++) await executed(contestant, agent);
  await setTimeout(restMilliseconds);
  const before = residentMegabytes(contestant.pid);
  for (let at = 0; at < waitingRuns; at++) {
    const { execution_status: state } = await executed(contestant, agent);
    if (state !== 'waiting') throw new Error(`A run was ${state}.`);
  }
  await setTimeout(restMilliseconds);
  const value = (Math.max(0, residentMegabytes(contestant.pid) - before) * 1000) / waitingRuns;
  return { what: `${waitingRuns} waiting runs, KB each`, who: contestant.name, value, bars: [atMost('≤ 100 KB', value, 100)] };
}

const cpuMilliseconds = ({ pid }: Contestant): number => {
  const { user, system } = cpuTime(pid);
  return (user + system) / 1000;
};

interface Executed {
  readonly execution_status: string;
  readonly error: unknown;
}

const executed = (contestant: Contestant, agent: number) =>
  asked<Executed>(contestant, '/server/execute-agent', { agent_id: agent, message: 'Go.', streaming: false });

/** An agent with a tool that asks the model's server, for which nobody is asked where it is a GET. */
async function agentWith(contestant: Contestant, port: number, method: 'GET' | 'POST'): Promise<number> {
  const tool = {
    type: 'http',
    name: 'lookup',
    description: 'Looks something up.',
    parameters: { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'] },
    request: { method, url: `http://127.0.0.1:${port}/things/{{at}}` },
  };
  const definition = { name: method, mode: 'autonomous', instructions: 'Work.', model: 'gpt-4o-mini', tools: [tool] };
  return (await asked<{ id: number }>(contestant, '/server/mine/agents', definition)).id;
}

async function asked<Answer>({ port }: Contestant, path: string, body: object): Promise<Answer> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  const said = await answer.text();
  return (answer.headers.get('content-type')?.includes('json') ? JSON.parse(said) : said) as Answer;
}

/** A model that calls the tool until it has called it often enough, and the tool. */
async function openModel() {
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  if (request.url!.startsWith('/things/')) return void response.writeHead(200, { 'content-type': 'text/plain' }).end('A thing.');
  const { messages, stream } = JSON.parse(body) as { messages: readonly { role: string }[]; stream?: boolean };
  const calls = messages.filter(({ role }) => role === 'tool').length;
  const isLast = calls >= stepsOfRun - 1;
  const call = { index: 0, id: `call_${calls}`, type: 'function', function: { name: 'lookup', arguments: `{"at":${calls}}` } };
  const said = isLast || !stream ? { role: 'assistant', content: 'All done.' } : { role: 'assistant', content: null, tool_calls: [call] };
  const reason = isLast || !stream ? 'stop' : 'tool_calls';
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  const common = { id: 'x', created: 0, model: 'gpt-4o-mini' };
  if (!stream) {
    const whole = { ...common, object: 'chat.completion', choices: [{ index: 0, message: said, finish_reason: reason }], usage };
    return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
  }
  const chunk = (choices: readonly object[], more: object = {}) =>
    `data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(chunk([{ index: 0, delta: said, finish_reason: null }]));
  response.write(chunk([{ index: 0, delta: {}, finish_reason: reason }]));
  response.end(`${chunk([], { usage })}data: [DONE]\n\n`);
}
