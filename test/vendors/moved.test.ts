import { describe, expect, test } from 'vitest';
import { agentOf, type Agent, type AgentOptions, type Result, type Said, type Shown } from '../support/agents.ts';
import type { Face } from '../support/all-faces.ts';
import { modelNames, providerOf, type VendorRequest } from '../support/fakes/vendors/index.ts';
import { signersIn } from '../support/fakes/vendors/signed.ts';
import { refusedBy, type WireName } from '../support/fakes/vendors/vendor.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';
import { historyOf, type Told } from './history.ts';

/** A conversation whose model is another one in each turn: whatever was said before reaches each provider. */

const byWire: Readonly<Record<WireName, readonly string[]>> = {
  chat: [
    'gpt-4o',
    'deepseek-v4',
    'kimi-k2-thinking',
    'mistral-large-latest',
    'gpt-5',
    'gpt-oss-120b',
    'glm-5',
    'vllm-llama3.3',
    'azure-gpt-5',
    'ollama-llama3.3',
  ],
  responses: ['gpt-6-sol', 'azure-gpt-6-sol', 'gpt-6-sol-on-responses', 'gpt-5-on-responses', 'gpt-4o-on-responses'],
  messages: ['claude-sonnet-5', 'vertex-claude-opus-4-6', 'claude-haiku-4-5', 'claude-opus-5-5'],
  gemini: ['gemini-3-flash-preview', 'vertex-gemini-3-flash', 'gemini-2.5-flash'],
};
const wires = Object.keys(byWire) as readonly WireName[];
const usualWire = (model: string) => wires.find((wire) => byWire[wire].includes(model))!;

/** Of four wires each follows each, itself too. */
const walk = [0, 0, 1, 0, 2, 0, 3, 1, 1, 2, 1, 3, 2, 2, 3, 3, 0, 1, 2, 0];

/** The models in turn, from wire to wire. */
const orders = [0, 1, 2, 3].map((shift) => {
  const used = new Map<WireName, number>();
  return walk.map((step) => {
    const wire = wires[(step + shift) % wires.length]!;
    const models = byWire[wire];
    const count = used.get(wire) ?? 0;
    used.set(wire, count + 1);
    return models[(count + shift * 3) % models.length]!;
  });
});

test('the conversation moves from each wire to each, and to each model', () => {
  for (const order of orders) expect(new Set(order.slice(1).map((model, at) => `${usualWire(order[at]!)} to ${usualWire(model)}`)).size).toBe(16);
  expect(new Set(orders.flat())).toEqual(new Set(Object.values(byWire).flat()));
  expect(modelNames).toEqual(expect.arrayContaining(orders.flat()));
});

interface Client {
  readonly name: string;
  readonly face: Face;
  readonly options: Pick<AgentOptions, 'stored' | 'keeps'>;
  /** What it sends besides the conversation, which depends on the model. */
  fields(model: string): object;
}

const reasons = (model: string) => !/4o|mistral|llama|glm/.test(model);
const chatFields = (model: string) => (reasons(model) ? { reasoning_effort: 'medium' } : {});
const reasoningFields = (model: string) => (reasons(model) ? {} : { reasoning: undefined, include: undefined });

const clients: readonly Client[] = [
  { name: 'chat', face: 'chat', options: {}, fields: chatFields },
  {
    name: 'chat without thoughts',
    face: 'chat',
    options: { keeps: ([{ role, content, tool_calls }]) => [{ role, content, ...(tool_calls ? { tool_calls } : {}) }] },
    fields: chatFields,
  },
  { name: 'responses', face: 'responses', options: {}, fields: reasoningFields },
  { name: 'responses, stored', face: 'responses', options: { stored: true }, fields: reasoningFields },
  {
    name: 'messages',
    face: 'messages',
    options: {},
    fields: (model) => ({
      max_tokens: 9000,
      thinking: /claude-(?!haiku|opus-4-6)/.test(model) ? { type: 'adaptive' } : { type: 'enabled', budget_tokens: 2000 },
    }),
  },
  { name: 'gencompat', face: 'gencompat', options: {}, fields: () => ({}) },
];

const ways = clients.flatMap((client) =>
  [false, true].flatMap((stream) =>
    orders.map((order, at) => ({ client, stream, order, name: `${client.name}, ${stream ? 'streamed' : 'whole'}, order ${at + 1}` })),
  ),
);

const image = (name: string): Shown => ({ type: 'image/png', base64: Buffer.from(`image ${name}`).toString('base64') });
const pdf = (name: string): Shown => ({ type: 'application/pdf', base64: Buffer.from(`%PDF- of ${name}`).toString('base64') });
const use = (name: string) => `use the tool with {"path":"${name}","line":7}`;

const readFile = {
  name: 'read_file',
  description: 'Reads a file.',
  parameters: { type: 'object', properties: { path: { type: 'string' }, line: { type: 'integer' } }, required: ['path'] },
};

const spoken: Readonly<Record<Face, WireName>> = { chat: 'chat', responses: 'responses', messages: 'messages', gencompat: 'gemini' };

/** Of these nobody can say to the vendor what the client asked: the client asks another. */
const inherent: ReadonlySet<string> = new Set(['ollama: parts']);

/** Vendors that read the texts of their own thoughts, in the field of the chat interface. */
const readsThoughts: ReadonlySet<string> = new Set(['deepseek', 'moonshot', 'openrouter']);

type Step = { readonly say: string; readonly shown?: Shown } | { readonly give: readonly Result[] };

/** Twenty turns. */
const story: readonly Step[] = [
  { say: 'Turn 1: good day' },
  { say: `Turn 2: ${use('a')}` },
  { give: [{ text: '{"$ref":"#/$defs/A"}' }] },
  { say: `Turn 4: say why and ${use('b')} and with {"path":"c"}` },
  { give: [{ text: 'b is empty' }, { text: 'c is 1.10' }] },
  { say: `Turn 6: ${use('d')}` },
  { give: [{ text: 'The user refused this call.', failed: true }] },
  { say: 'Turn 8: look at this', shown: image('one') },
  { say: `Turn 9: ${use('e')} and with {"path":"f"}` },
  { give: [{ text: 'e is fine' }, { text: 'f is a picture', shown: image('two') }] },
  { say: `Turn 11: ${use('g')}` },
  { give: [{ text: `g says: ${use('h')}` }] },
  { give: [{ text: `h says: ${use('i')}` }] },
  { give: [{ text: 'i says nothing more' }] },
  { say: 'Turn 15: read this', shown: pdf('three') },
  { say: `Turn 16: ${use('j')}` },
  { give: [{ text: 'j is a document', shown: pdf('four') }] },
  { say: `Turn 18: ${use('k')}` },
  { give: [{ text: '' }] },
  { say: 'Turn 20: goodbye' },
];

const { vendors, server } = await scriptedVendors({ signed: true });

describe('a conversation of twenty turns, each with another model, loses nothing without a warning', () => {
  test.each(ways)('$name', async ({ client, stream, order }) => {
    const conversation = new Conversation(client, stream, order);
    for (const step of story) await conversation.go(step);
    expect(vendors.mishaps).toEqual([]);
  });
});

class Conversation {
  readonly #client: Client;
  readonly #agent: Agent;
  readonly #models: readonly string[];
  #asked = 0;
  #calls: Said['calls'] = [];
  /** What was said and heard. */
  readonly #told: Told[] = [];
  /** The answers with calls. */
  readonly #called: VendorRequest[] = [];

  constructor(client: Client, stream: boolean, order: readonly string[]) {
    this.#client = client;
    this.#models = order;
    const { face, options } = client;
    this.#agent = agentOf(server, face, { ...options, model: order[0]!, stream, tools: [readFile] });
  }

  async go(step: Step): Promise<void> {
    this.#note(step);
    this.#move();
    let said = 'say' in step ? await this.#agent.say(step.say, ...(step.shown ? [step.shown] : [])) : await this.#agent.give(...step.give);
    for (let tries = 0; said.status !== 200; tries++) {
      if (tries === 10 || !this.#isDue()) expect.fail(`${this.#place()}: ${said.status} ${said.raw}`);
      this.#move();
      said = await this.#agent.again();
    }
    const request = vendors.requests.at(-1)!;
    const history = historyOf(request.wire!, request.body);
    const lost = missing(this.#told, history, said.warnings);
    if (lost.length > 0) expect.fail(`${this.#place()}: ${lost.join(', ')}; warnings: ${said.warnings}`);
    this.#thoughts(request);
    if (said.text !== '') this.#told.push({ kind: 'model', text: said.text });
    this.#calls = said.calls;
    for (const call of said.calls) this.#told.push({ kind: 'call', text: written(call) });
    if (said.calls.length > 0) this.#called.push(request);
    if (said.calls.length > 0 !== JSON.stringify(step).includes('use the tool')) expect.fail(`${this.#place()}: ${said.calls.length} calls`);
  }

  #note(step: Step): void {
    if ('say' in step) this.#told.push({ kind: 'user', text: step.say });
    else for (const [at, { text }] of step.give.entries()) this.#told.push({ kind: 'result', text: `${written(this.#calls[at]!)} => ${text}` });
    for (const shown of 'say' in step ? [step.shown] : step.give.map((one) => one.shown))
      if (shown) this.#told.push({ kind: shown.type.startsWith('image/') ? 'image' : 'file', text: shown.base64 });
  }

  #move(): void {
    const model = this.#models[this.#asked++ % this.#models.length]!;
    vendors.reset();
    this.#agent.move(model, this.#client.fields(model));
  }

  #place = (): string => `${this.#told.findLast(({ kind }) => kind === 'user')?.text} to ${vendors.requests.at(-1)?.vendor} ${vendors.requests.at(-1)?.model}`;

  /** Would the vendor have refused the client's own words too? */
  #isDue(): boolean {
    const { vendor, wire, rule, model, status } = vendors.requests.at(-1)!;
    if (status === 200) return false;
    if (inherent.has(`${vendor}: ${rule}`)) return true;
    const { rules } = providerOf(this.#models[(this.#asked - 1) % this.#models.length]!).vendor.wires[wire!]!;
    return wire === spoken[this.#client.face] && refusedBy(rules, { wire, model, body: { ...this.#agent.sent, model }, headers: {} }) !== undefined;
  }

  /** Thoughts go back to whom they came from, and to nobody else. */
  #thoughts({ vendor, wire, model, text }: VendorRequest): void {
    const isOwnText = wire === spoken[this.#client.face]; // the client says it itself
    const shown = isOwnText ? [] : [...text.matchAll(/something\. by ([a-z-]+) \d+\./g)].flatMap(([, by]) => (by === vendor ? [] : [by]));
    const others = [...signersIn(vendor, text), ...shown];
    if (others.length > 0) expect.fail(`${this.#place()} has thoughts of ${others.join(', ')}`);
    if (model === 'gpt-4o') return; // it does not think, and takes no thoughts
    for (const { vendor: by, wire: on, said } of this.#called) {
      if (by !== vendor || on !== wire || !said) continue;
      const back = said.signature ?? (readsThoughts.has(vendor) ? said.thought : undefined);
      if (back !== undefined && !text.includes(JSON.stringify(back).slice(1, -1))) expect.fail(`${this.#place()} has not got back ${back}`);
    }
  }
}

/** What was told is in what arrived, in its order and once, or a warning names it. @returns what is not */
function missing(told: readonly Told[], arrived: readonly Told[], warnings: string): readonly string[] {
  const lost: string[] = [];
  let at = 0;
  for (const { kind, text } of told) {
    if (kind === 'image' || kind === 'file') {
      const isThere = arrived.some((one) => one.kind === kind && one.text === text);
      if (!isThere && !warned[kind].test(warnings)) lost.push(`${kind} ${text}`);
      continue;
    }
    const isOnce = kind === 'call' || kind === 'result';
    const place = arrived.findIndex((one, i) => i >= at && one.kind === kind && (isOnce ? one.text === text : one.text.includes(text)));
    if (place < 0) lost.push(`${kind} ${text}`);
    else at = isOnce ? place + 1 : place;
  }
  for (const kind of ['call', 'result', 'image', 'file'] as const) {
    const [once, more] = [told, arrived].map((all) => all.filter((one) => one.kind === kind).length);
    if (more! > once!) lost.push(`${kind}: ${more} instead of ${once}`);
  }
  return lost;
}

const warned = { image: /\bimage\b/, file: /\bfile\b/ };

const written = ({ name, arguments: args }: Said['calls'][number]): string => `${name} ${JSON.stringify(args)}`;
