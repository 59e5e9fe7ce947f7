import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import type { Json, JsonObject } from '#model/json';
import { embedded } from './databases.ts';
import { always, deepJson, longLine, manyChoices, manyEvents, ok, startUpstream, toolCalls, type Behaviour, type Upstream } from './fakes/upstream/index.ts';
import { hostileSchemas } from './hostile-schemas.ts';
import type { Watched } from './loop-watch.ts';
import { startProcess, type ServerProcess } from './server-process.ts';

/** A request that somebody sends to keep the server busy, and what the provider says to it. */
export interface Attack {
  readonly name: string;
  readonly path: string;
  readonly body: unknown;
  readonly answer?: Behaviour;
}

const chat = '/server/chatcompat/v1/chat/completions';
const responses = '/server/chatcompat/v1/responses';
const messages = '/server/messages/v1/messages';
const gencompat = (model: string, verb = 'generateContent') => `/server/gencompat/v1beta/models/${model}:${verb}`;
const said = [{ role: 'user', content: 'The city is Paris, k1: 2, 3 and "four" at 5 o’clock.' }];
const contents = [{ role: 'user', parts: [{ text: said[0]!.content }] }];

/** A schema as each interface takes it: of the answer, and of a tool that must be called. */
const asked = (schema: JsonObject): readonly Omit<Attack, 'name'>[] => [
  { path: chat, body: { model: 'built-in', messages: said, response_format: { type: 'json_schema', json_schema: { name: 's', schema } } } },
  {
    path: responses,
    body: { model: 'built-in', input: said, tools: [{ type: 'function', name: 't', parameters: schema, strict: false }], tool_choice: 'required' },
  },
  { path: messages, body: { model: 'built-in', max_tokens: 100, messages: said, tools: [{ name: 't', input_schema: schema }], tool_choice: { type: 'any' } } },
  { path: gencompat('built-in'), body: { contents, generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } } },
];

const held = (schema: JsonObject, answer: Json): Omit<Attack, 'name'> => ({
  path: gencompat('gpt-4o-mini'),
  body: { contents, generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } },
  answer: ok({ text: JSON.stringify(answer) }),
});

const long = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length));

const faces: readonly ((text: string) => Omit<Attack, 'name' | 'answer'>)[] = [
  (text) => ({ path: chat, body: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }], stream: true, app_name: 'x' } }),
  (text) => ({ path: responses, body: { model: 'gpt-4o-mini', input: text, stream: true } }),
  (text) => ({ path: messages, body: { model: 'gpt-4o-mini', max_tokens: 10, messages: [{ role: 'user', content: text }], stream: true } }),
  (text) => ({ path: gencompat('gpt-4o-mini', 'streamGenerateContent'), body: { contents: [{ role: 'user', parts: [{ text }] }] } }),
];

const answers: readonly (readonly [string, () => Behaviour])[] = [
  ['100,000 small events', () => manyEvents(100_000)],
  ['10,000 choices', () => manyChoices(10_000)],
  ['a line of 100 MB', () => longLine()],
  ['JSON of 10,000 levels', () => deepJson()],
  ['3,000 tool calls', () => toolCalls(Array.from({ length: 3000 }, (_, at) => ({ name: `t${at}`, json: '{"a":1}' })))],
  ['a tool call of 500 KB in pieces', () => toolCalls([{ name: 't', json: JSON.stringify({ a: long('ab', 500_000) }) }])],
];

const fenced: readonly (readonly [string, string])[] = [
  ['a code fence and 5,000 line feeds', `\`\`\`json${long('\n', 5000)}`],
  ['a code fence and a megabyte of line feeds', `\`\`\`${long('\n', 1_000_000)}x`],
  ['a megabyte of code fences', long('```\n', 1_000_000)],
  ['a megabyte of brackets', long('[', 1_000_000)],
  ['JSON of a megabyte', JSON.stringify(Array.from({ length: 100_000 }, (_, at) => at))],
];

export const attacks: readonly Attack[] = [
  ...hostileSchemas.flatMap(([name, schema, answer], at) =>
    [asked(schema)[at % 4]!, asked(schema)[(at + 2) % 4]!, held(schema, answer)].map((one) => ({ ...one, name: `${name}, ${one.path.slice(8, 40)}` })),
  ),
  ...fenced.map(([name, text]) => ({ ...held({ type: 'object', required: ['a'] }, {}), name, answer: ok({ text }) })),
  ...answers.flatMap(([name, answer]) => faces.map((face) => ({ ...face('hi'), name: `${name}, ${face('').path.slice(8, 40)}`, answer: answer() }))),
];

/** Milliseconds of work at a stretch, and bytes above those of a server that has warmed up. */
const most = { stretch: 50, resident: 512 * 2 ** 20 };

/** Sends each of them to a server of its own, one after the other. @returns those that held its event loop, or its memory, or were answered by 500 */
export async function unbearable(chosen: readonly Attack[]): Promise<string[]> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startProcess(await embedded.place(), upstream.url, '', new URL('./loop-watch.ts', import.meta.url));
  for (const attack of attacks.slice(0, 3)) await suffered(server, upstream, attack);
  const idle = (await watched(server)).resident;
  const bad: string[] = [];
  for (const attack of chosen) {
    let seen = await suffered(server, upstream, attack);
    // Code that is not warm yet, and a collection of garbage that fell due just then, are no fault of the request.
    for (let again = 0; again < 2 && seen.longest > most.stretch; again++) {
      const other = await suffered(server, upstream, attack);
      if (other.longest < seen.longest) seen = other;
    }
    const held = seen.resident - idle;
    if (seen.longest > most.stretch || seen.status === 500 || held > most.resident)
      bad.push(`${attack.name}: ${Math.round(seen.longest)} ms, ${Math.round(held / 2 ** 20)} MB, status ${seen.status}`);
  }
  return bad;
}

async function watched(server: ServerProcess): Promise<Watched> {
  const answer = once(server.child, 'message');
  server.child.send('seen');
  const [seen] = (await answer) as [Watched];
  return seen;
}

/** Sends it, reads the answer to its end, and says what the server did meanwhile. */
async function suffered(server: ServerProcess, upstream: Upstream, { path, body, answer }: Attack): Promise<Watched & { readonly status: number }> {
  upstream.reset();
  if (answer) upstream.script(always(answer));
  await watched(server);
  let status = 0;
  try {
    const given = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    status = given.status;
    for await (const _ of given.body!);
  } catch {
    /* an answer that breaks off is one, too */
  }
  return { ...(await watched(server)), status };
}
