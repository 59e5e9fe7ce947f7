/* The reference servers of the Model Context Protocol, over HTTP and as the operator's programs, through each interface that calls tools. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../../support/databases.ts';
import { everything, filesystem, startEverything } from '../../support/fakes/mcp.ts';
import { always, ok, startUpstream, toolCalls } from '../../support/fakes/upstream/index.ts';
import { idOf, newDataset } from '../datasets/people.ts';
import { runs } from './run-events.ts';
import { person, visited, type Answer, type Person } from './visitors.ts';

const long = 120_000;
const heron = 'The heron weighs forty-two stones.';

/** What is called at a server, and what comes of it. */
interface Calling {
  readonly name: string;
  /** Of the settings; `FOLDER` is one with a file `heron.txt`. */
  readonly program?: object;
  readonly tool: string;
  readonly message: string;
  readonly said: string;
}

const callings: readonly Calling[] = [
  { name: 'web', tool: 'echo', message: 'Call web__echo with message "heron".', said: 'Echo: heron' },
  {
    name: 'local',
    program: { command: process.execPath, args: [everything] },
    tool: 'echo',
    message: 'Call local__echo with message "heron".',
    said: 'Echo: heron',
  },
  {
    name: 'files',
    program: { command: process.execPath, args: [filesystem, 'FOLDER'] },
    tool: 'read_text_file',
    message: 'Call files__read_text_file with path "FOLDER/heron.txt".',
    said: heron,
  },
];

/** A server with all of them, and a folder. */
async function reached() {
  const place = await embedded.place();
  const folder = join(place.folder, 'shared');
  await mkdir(folder);
  await writeFile(join(folder, 'heron.txt'), heron);
  const url = await startEverything();
  const stdio = callings.flatMap(({ name, program }) => (program ? [{ name, ...program, approval: 'never' }] : []));
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const yaml = `mcp: { approval: never, stdio: ${JSON.stringify(stdio)} }\noutbound: { allow: ["${new URL(url).origin}"] }\n`.replaceAll('FOLDER', folder);
  const all = await visited(place, { yaml, upstream: upstream.url });
  const ada = await person(all);
  await ada.ask('POST', '/server/mine/mcp-servers', { name: 'web', url, approval: 'never' });
  const { body } = await ada.ask('GET', '/server/list-mcp-servers');
  const ids = new Map((body['response'] as { id: number; server_name: string }[]).map(({ id, server_name: name }) => [name, id]));
  return { all, ada, upstream, folder, ids };
}

const tools = ({ body }: Answer) => (body['response'] as { unique_id: string }[]).map(({ unique_id: id }) => id);

const agentWith = async ({ ask }: Person, given: readonly object[], more: object = {}) =>
  (await ask('POST', '/server/mine/agents', { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'built-in', tools: given, ...more })).body[
    'id'
  ];

test('their tools are listed, and called for a question, a response and an agent', { timeout: long }, async () => {
  const { all, ada, folder, ids } = await reached();
  const listed = tools(await ada.ask('GET', '/server/list-mcp-tools'));
  const client = new OpenAI({ apiKey: ada.key, baseURL: `${all.server.url}/v1`, maxRetries: 0 });
  for (const { name, tool, message: text, said } of callings) {
    const [id, message] = [ids.get(name)!, text.replaceAll('FOLDER', folder)];
    expect(listed).toContain(`${id}_${tool}`);

    const query = await ada.ask('POST', '/server/query', { message, model: 'built-in', enabled_mcp_tools: [`${id}_${tool}`] });
    expect(query.body['tool_responses']).toMatchObject([{ name: `${name}__${tool}`, response: expect.stringContaining(said) as string, is_error: false }]);

    const response = await client.responses.create({
      model: 'built-in',
      input: message,
      tools: [{ type: 'mcp', server_label: name, require_approval: 'never', allowed_tools: [tool] }],
    });
    expect(response.output.find(({ type }) => type === 'mcp_call')).toMatchObject({
      status: 'completed',
      name: tool,
      output: expect.stringContaining(said) as string,
    });

    const agent = await agentWith(ada, [{ type: 'mcp', server: id, tools: [tool], approval: 'never' }]);
    const run = await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message, streaming: false });
    expect(run.body).toMatchObject({ execution_status: 'completed' });
    const told = await runs(ada, all.server.url).events(run.body['execution_id'] as string);
    expect(told.find(({ event }) => event === 'tool.result')!.data['data']).toMatchObject({ isError: false, text: expect.stringContaining(said) as string });
  }
  // what the program may reach is the operator's to say
  const outside = await ada.ask('POST', '/server/query', {
    message: `Call files__read_text_file with path "${join(folder, '..', 'dragoman.yaml')}".`,
    model: 'built-in',
    enabled_mcp_tools: [`${ids.get('files')!}_read_text_file`],
  });
  expect(outside.body['tool_responses']).toMatchObject([{ is_error: true, response: expect.stringMatching(/denied|outside/i) as string }]);
});

test('an agent with both, a dataset and a plugin answers what needs all of them: streamed, whole, and with a file', { timeout: long }, async () => {
  const { all, ada, upstream, folder, ids } = await reached();
  const dataset = await newDataset(ada, 'ponds');
  await ada.ask('POST', '/server/train', { content: 'The heron lives at the north pond.', force_dataset: dataset });
  const id = await idOf(ada, dataset);
  const agent = await agentWith(
    ada,
    [
      { type: 'mcp', server: ids.get('web'), tools: ['get-sum'], approval: 'never' },
      { type: 'mcp', server: ids.get('files'), tools: ['read_text_file', 'write_file'], approval: 'never' },
      { type: 'dataset', dataset: id },
      { type: 'plugin', plugin: 1 },
    ],
    { model: 'gpt-4o-mini' },
  );
  const path = join(folder, 'report.txt');
  const answer = 'It lives at the north pond [1] and weighs 42.';
  interface Message {
    readonly role: string;
    readonly content: string;
  }
  let last: readonly Message[] = [];
  upstream.script(
    always({
      name: 'worker',
      answer(exchange) {
        const asked = JSON.parse(exchange.request.body.toString()) as { messages: readonly Message[]; tools?: unknown };
        if (!asked.tools) return ok({ text: 'A short text.' }).answer(exchange);
        const results = asked.messages.filter(({ role }) => role === 'tool');
        if (results.length === 0)
          return toolCalls([
            { name: 'web__get-sum', json: '{"a":40,"b":2}' },
            { name: 'files__read_text_file', json: JSON.stringify({ path: join(folder, 'heron.txt') }) },
            { name: `search_ponds_${id}`, json: '{"question":"Where does the heron live?"}' },
            { name: 'plugin__summarise', json: '{"text":"A long text."}' },
          ]).answer(exchange);
        if (results.length === 4) return toolCalls([{ name: 'files__write_file', json: JSON.stringify({ path, content: answer }) }]).answer(exchange);
        last = asked.messages;
        return ok({ text: answer }).answer(exchange);
      },
    }),
  );
  const request = { agent_id: agent, message: 'Where does it live, and what does it weigh?' };
  const seen = () => {
    const results = JSON.stringify(last.filter(({ role }) => role === 'tool'));
    for (const said of ['42', heron, 'north pond', 'A short text.', 'Successfully wrote']) expect(results).toContain(said);
  };

  const whole = await ada.ask('POST', '/server/execute-agent', { ...request, streaming: false });
  expect(whole.body).toMatchObject({ execution_status: 'completed', response: { response: answer } });
  expect(await readFile(path, 'utf8')).toBe(answer);
  seen();

  const { events } = await runs(ada, all.server.url).executed({ ...request, streaming: true });
  expect(events.flatMap(({ event, data }) => (event === 'token' ? [(data['data'] as { delta: string }).delta] : [])).join('')).toBe(answer);
  expect(events.at(-1)).toMatchObject({ event: 'workflow_completed' });
  seen();

  const form = new FormData();
  for (const [name, value] of Object.entries({ ...request, streaming: 'false' })) form.set(name, String(value));
  form.set('file', new File(['The file says quagga.'], 'note.txt'));
  const sent = await fetch(`${all.server.url}/server/execute-agent`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body: form });
  expect(await sent.json()).toMatchObject({ execution_status: 'completed', response: { response: answer } });
  expect(JSON.stringify(last)).toContain('The file says quagga.');
  seen();
});
