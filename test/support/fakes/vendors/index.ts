/**
 * The vendors as they are: OpenAI, Azure, Anthropic, Google, DeepSeek, Moonshot, Mistral, Groq, OpenRouter at their own host names, Ollama and vLLM at plain
 * addresses. Each refuses what its rules refuse, in its own words, and answers well otherwise.
 *
 * ```ts
 * const vendors = await startVendors();
 * const server = await startTestServer({ yaml: vendors.yaml });
 * await server.ask(chat, { model: 'gpt-6-sol', messages: [{ role: 'user', content: 'use the tool' }], tools });
 * expect(vendors.requests.map(({ path, status, rule }) => [path, status, rule])).toEqual([['/v1/responses', 200, undefined]]);
 * await vendors.close();
 * ```
 *
 * What a user says decides what is answered: `use the tool` calls the first tool, `use the tool twice` calls it two times, `use the tool read with {"path":"a"}` that
 * tool with these arguments (a result may ask so, too), `end with SAFETY` ends so on Gemini, `flag me` is refused by OpenRouter. Everything else is echoed. After
 * results the answer is `The tool said: …`; results may be written into a turn of the user, behind `Tool result for …:`.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { deliver, whole } from '../upstream/answer.ts';
import type { Exchange } from '../upstream/behaviour.ts';
import { good, type Saying } from '../upstream/good.ts';
import { Recording } from '../upstream/recording.ts';
import { accounts, flagged } from './accounts.ts';
import { hears, withWrittenResults } from './heard.ts';
import { openLine } from './line.ts';
import { sample } from './sample.ts';
import { ownThoughts, told } from './signed.ts';
import { addresses, settingsOf, vendorAt, vendors } from './settings.ts';
import { refusedBy, type Any, type Ask, type Heard, type HeardTool, type Spoken, type Vendor, type WireName } from './vendor.ts';
import { wantedCalls, type WantedCall } from './wanted.ts';

export { modelNames, providerOf } from './settings.ts';

/** A request as it came, and what was answered. */
export interface VendorRequest {
  /** A number that no other request has. */
  readonly id: number;
  readonly vendor: string;
  readonly wire: WireName | undefined;
  readonly model: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly body: Any;
  readonly status: number;
  /** The rule that refused it. */
  readonly rule?: string;
  /** The words of the refusal. */
  readonly message?: string;
  /** What was answered. */
  readonly said?: Saying;
}

export interface Vendors {
  /** For a server's settings file: `outbound`, `providers`, `models` and `routing`. */
  readonly yaml: string;
  /** The same with all vendors at plain addresses: only what they refuse tells who they are. */
  readonly unknownYaml: string;
  readonly proxy: string;
  readonly caFile: string;
  /** A plain address of each vendor, by its name: `http://127.0.0.1:port`. */
  readonly plain: Readonly<Record<string, string>>;
  /** Requests for answers, in the order in which they came. */
  readonly requests: readonly VendorRequest[];
  /** What failed in here rather than there. */
  readonly mishaps: readonly string[];
  /** Forgets the requests. */
  reset(): void;
  close(): Promise<void>;
}

/** @param signed thoughts, signatures and texts say by whom they are, and in which answer: `by google 7.`; nobody takes what another signed */
export async function startVendors({ signed = false }: { readonly signed?: boolean } = {}): Promise<Vendors> {
  let requests: VendorRequest[] = [];
  const mishaps: string[] = [];
  let count = 0;

  const listener =
    (find: (message: IncomingMessage) => Vendor | undefined): RequestListener =>
    (message, response) => {
      const vendor = find(message);
      if (!vendor) {
        response.writeHead(421).end();
        return;
      }
      answer(vendor, message, response).catch((error: unknown) => {
        mishaps.push(`${vendor.name} ${message.url}: ${String(error)}`);
        response.destroy();
      });
    };

  async function answer(vendor: Vendor, message: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of message as AsyncIterable<Buffer>) pieces.push(piece);
    const recording = new Recording(count++, { number: 0, requests: [], used: false, left: new AbortController(), cutByUs: false }, message);
    const { method, path, headers, key } = recording;
    if (method === 'GET') return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","data":[]}');
    const found = Object.entries(vendor.wires).find(([, { wire }]) => wire.speaks(method, path)) as [WireName, Spoken] | undefined;
    recording.read(Buffer.concat(pieces), found?.[1].wire);
    const body = recording.json as Any;
    const deployment = /\/deployments\/([^/]+)\//.exec(path)?.[1];
    const model = deployment ?? recording.model;
    const note = (status: number, more: object = {}) =>
      void requests.push({
        id: recording.id,
        vendor: vendor.name,
        wire: found?.[0],
        model,
        method,
        path,
        headers,
        text: recording.body.toString(),
        body,
        status,
        ...more,
      });
    const refuse = (status: number, refusal: Parameters<Vendor['fault']>[1], rule?: string) => {
      note(status, { message: refusal.message, ...(rule === undefined ? {} : { rule }) });
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(vendor.fault(status, refusal)));
    };
    if (counts(path)) return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":7,"totalTokens":7}');
    if (!found) return refuse(404, { message: `Invalid URL (${method} ${path})` });
    const [wireName, spoken] = found;
    const ask: Ask = { wire: wireName, model, body, headers };
    const heard = withWrittenResults(hears[wireName](body));
    const refused = refusedBy([accounts(vendor.name, key), ...(signed ? [ownThoughts(vendor.name)] : []), ...spoken.rules, flagged(vendor.name, heard)], ask);
    if (refused) return refuse(refused.refusal.status ?? 400, refused.refusal, refused.rule.name);
    const exchange: Exchange = {
      request: recording,
      wire: spoken.wire,
      asked: { ...spoken.wire.asked(body, path), model, text: heard.text },
      sleep: async () => {},
      hangUp: () => {},
    };
    const saying = sayingOf(spoken, ask, heard, recording.id);
    const said = signed ? told(saying, vendor.name, recording.id) : saying;
    note(200, { said });
    const answered = heard.text.includes('be an invalid prompt') && wireName === 'responses' ? invalidPrompt(exchange.asked.stream) : good(exchange, said);
    const left = new AbortController();
    response.once('close', () => left.abort());
    await deliver(answered, response, message.socket, left.signal, { sent: () => {}, done: () => {} }).catch((error: unknown) => {
      if (!left.signal.aborted) throw error;
    });
  }

  const line = await openLine(
    addresses,
    listener(({ headers: { host = '' } }) => vendorAt(host)),
  );
  const plain: Record<string, string> = {};
  for (const vendor of Object.values(vendors)) plain[vendor.name] = await line.plain(listener(() => vendor));
  return {
    yaml: settingsOf(line, plain, true),
    unknownYaml: settingsOf(line, plain, false),
    proxy: line.proxy,
    caFile: line.caFile,
    plain,
    get requests() {
      return requests;
    },
    mishaps,
    reset: () => void (requests = []),
    close: () => line.close(),
  };
}

const counts = (path: string): boolean => /\/messages\/count_tokens$|:countTokens$/.test(path.split('?')[0]!);

/** Calls a tool where the user asks for it or the request forces one; says JSON where it is to; tells what the tools said. */
function sayingOf({ says, callId }: Spoken, ask: Ask, heard: Heard, id: number): Saying {
  const special = says?.(ask, heard) ?? {};
  if (special.finish !== undefined) return special;
  const { tools, results, forced, forbidden, text, json, word } = heard;
  // A result may ask for the next call.
  const wanted = wantedCalls(results.length > 0 ? results.map(outputIn).join(' ') : text) ?? (forced !== undefined && results.length === 0 ? [{}] : []);
  const calls = forbidden ? [] : wanted.flatMap((one, at) => calledTool(one, tools, forced, (name) => callId?.(name, id * 2 + at)));
  if (calls.length > 0) return { ...special, text: text.includes('say why') ? `Because of ${id}.` : '', tools: calls };
  if (word !== undefined) return { ...special, text: word };
  if (json) return { ...special, text: JSON.stringify(sample(json.schema ?? { type: 'object', properties: { answer: { type: 'string' } } })) };
  return results.length > 0 ? { ...special, text: `The tool said: ${results.join(' ')}` } : special;
}

function calledTool({ name, json }: WantedCall, tools: readonly HeardTool[], forced: Heard['forced'], idOf: (name: string) => string | undefined) {
  const wanted = name ?? (typeof forced === 'string' ? forced : undefined);
  const tool = wanted === undefined ? tools[0] : (tools.find((one) => one.name === wanted) ?? tools.find((one) => one.name.endsWith(wanted)));
  if (!tool) return [];
  const id = idOf(tool.name);
  return [
    {
      name: tool.name,
      json: tool.custom ? textIn(json) : (json ?? JSON.stringify(sample(tool.schema ?? { type: 'object' }))),
      ...(tool.custom ? { custom: true as const } : {}),
      ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
      ...(id === undefined ? {} : { id }),
    },
  ];
}

/** A client of Gemini gives objects back: `{"output": "text"}`. */
function outputIn(result: string): string {
  if (!result.startsWith('{"output":')) return result;
  return String((JSON.parse(result) as { readonly output: unknown }).output);
}

/** What a tool of free text is given. */
const textIn = (json: string | undefined): string => (json === undefined ? 'print("hello")' : (JSON.parse(json) as { readonly input: string }).input);

/** A stream that ends with a refusal of the prompt. https://platform.openai.com/docs/guides/reasoning#advice-on-prompting */
function invalidPrompt(stream: boolean) {
  const error = { code: 'invalid_prompt', message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.' };
  const response = {
    id: 'resp_failed',
    object: 'response',
    created_at: 1_800_000_000,
    status: 'failed',
    error,
    incomplete_details: null,
    model: 'm',
    output: [],
    usage: null,
  };
  if (!stream) return whole(200, JSON.stringify(response), { 'content-type': 'application/json' });
  const frame = (type: string, at: number, value: object) => `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: at, response: value })}\n\n`;
  const frames = frame('response.created', 0, { ...response, status: 'in_progress', error: null }) + frame('response.failed', 1, response);
  return whole(200, frames, { 'content-type': 'text/event-stream' });
}
