import { decoder, type Decoder } from '#dialects/openai-chat/events';
import { decodeFault } from '#dialects/openai-chat/faults';
import { decodeResult } from '#dialects/openai-chat/result';
import type { Answering } from '#kit/answering';
import type { Upstreams } from '#kit/pool';
import { splitter } from '#kit/sse';
import type { Clock } from '#kit/clock';
import type { GenerateCall } from '#model/call';
import { speaks, type GenerateEvent } from '#model/event';
import { Fault } from '#model/fault';
import type { TargetContext } from '#model/generate';
import type { Target } from '#model/target';
import { ask, refusalText, upstreamFault, whole } from '../asking.ts';
import { addressOf, type OpenAISettings } from './address.ts';
import { keyRing, type KeyRing } from './keys.ts';
import { passStream, passWhole } from './lane.ts';
import { learnQuirk, requestBody, type Quirks } from './request-body.ts';

/** Anything that speaks OpenAI's chat wire: OpenAI, Azure, Mistral, Groq, vLLM, Ollama… */
export function openai(settings: OpenAISettings, upstreams: Upstreams, clock: Clock): { target(model: string): Target } {
  const keys = keyRing(settings.apiKeys, clock);
  const quirks = new Map<string, Quirks>();
  return {
    target(model) {
      const place: Place = { settings, upstreams, keys, model, quirks };
      return { name: `${settings.name}/${model}`, provider: settings.name, model, generate: (call, context) => generate(place, call, context) };
    },
  };
}

interface Place {
  readonly settings: OpenAISettings;
  readonly upstreams: Upstreams;
  readonly keys: KeyRing;
  readonly model: string;
  /** What the models of this provider have refused before. */
  readonly quirks: Map<string, Quirks>;
}

async function* generate(place: Place, call: GenerateCall, context: TargetContext): AsyncGenerator<GenerateEvent> {
  const { answering, ignored, lane } = await answered(place, call, context);
  try {
    if (call.stream && isEventStream(answering)) {
      const frames = decoder(place.model, ignored);
      const first = await firstLine(answering);
      yield* lane && hasPlainLines(first) ? passStream(answering, first, frames, lane, context) : streamed(answering, first, frames, context);
      return;
    }
    const bytes = await whole(answering);
    const body = parsed(bytes);
    for (const event of lane && !call.stream ? passWhole(bytes, body, place.model, lane) : decodeResult(body, place.model, ignored)) yield event;
  } finally {
    answering.leave();
  }
}

/** Asks with one key after the other until one is taken; a field that the provider refuses is left out from then on. */
async function answered(place: Place, call: GenerateCall, context: TargetContext) {
  const { settings, upstreams, keys, model, quirks } = place;
  const { url, path } = addressOf(settings, model);
  const turns = [...keys.inTurn()];
  for (let key = turns.shift() ?? ''; ;) {
    const { body, ignored, lane } = requestBody(call, model, quirks.get(model));
    if (context.strict && ignored.length > 0) throw new Fault('invalid', `Not every field can be honoured: ${ignored.join('; ')}.`);
    const answering = await ask(upstreams, { url, path, headers: headersOf(settings, key, context), body }, context);
    if (answering.status === 200) return { answering, ignored, lane };
    const text = await refusalText(answering);
    const fault = decodeFault(answering.status, text, answering.headers);
    const learned = learnQuirk(quirks.get(model), answering.status, text);
    if (learned) quirks.set(model, learned);
    else if (fault.details.key && turns.length > 0) {
      keys.setAside(key);
      key = turns.shift()!;
    } else {
      if (fault.details.key) keys.setAside(key);
      throw fault;
    }
  }
}

/** The bytes up to the end of the first line, and what came with them. */
async function firstLine(answering: Answering): Promise<Uint8Array | undefined> {
  let bytes: Uint8Array | undefined;
  try {
    do {
      const more = await answering.take();
      if (!more) return bytes;
      bytes = bytes ? Buffer.concat([bytes, more]) : more;
    } while (!bytes.includes(LF) && !bytes.includes(CR) && bytes.length < maxLine);
    return bytes;
  } catch (error) {
    throw upstreamFault(error, true);
  }
}

const LF = 0x0a;
const CR = 0x0d;
const byteOrderMark = 0xef;
const maxLine = 1_048_576;

function hasPlainLines(bytes: Uint8Array | undefined): boolean {
  return bytes === undefined || (!bytes.includes(CR) && bytes[0] !== byteOrderMark);
}

async function* streamed(answering: Answering, first: Uint8Array | undefined, frames: Decoder, context: TargetContext): AsyncGenerator<GenerateEvent> {
  const lines = splitter({ maxLine });
  let speaking = false;
  try {
    for (let bytes = first; bytes; bytes = await answering.take()) {
      for (const line of lines.push(bytes)) {
        const events = frames.decode(line);
        if (!speaking && events.some(speaks)) {
          speaking = true;
          answering.quietSeconds = context.patience.idle;
        }
        yield* events;
      }
    }
    for (const line of lines.end()) yield* frames.decode(line);
    yield* frames.end();
  } catch (error) {
    throw upstreamFault(error, true);
  }
}

function headersOf({ apiKeys, kind, headers }: OpenAISettings, key: string, context: TargetContext): Record<string, string> {
  const beta = context.headers['openai-beta'];
  return {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    ...(apiKeys.length === 0 ? {} : kind === 'azure' ? { 'api-key': key } : { authorization: `Bearer ${key}` }),
    ...(beta === undefined ? {} : { 'openai-beta': beta }),
    ...headers,
  };
}

function isEventStream({ headers }: Answering): boolean {
  const type = headers['content-type'];
  return type === undefined || type.startsWith('text/event-stream');
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch (error) {
    throw new Fault('upstream-failed', 'The answer of the provider is not JSON.', { cause: error, elsewhere: true });
  }
}
