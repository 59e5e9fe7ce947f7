import { decodeRequest } from '#dialects/openai-chat/decode-request';
import { encodeFaultFrame, encoder } from '#dialects/openai-chat/events';
import { encodeResult } from '#dialects/openai-chat/result';
import { ChatCompletion } from '#dialects/openai-chat/completion';
import { ChatRequest } from '#dialects/openai-chat/wire';
import { answerHeaders, whoAnswered } from '#http/answer-headers';
import { EventStream } from '#http/event-stream';
import type { Exchange } from '#http/exchange';
import type { Asked, Route } from '#http/route';
import type { Clock } from '#kit/clock';
import type { GenerateCall } from '#model/call';
import type { GenerateEvent, Started } from '#model/event';
import { Fault, faultOf } from '#model/fault';
import { fold } from '#model/fold';
import type { Context, Generate } from '#model/generate';
import type { Lane } from '#model/lane';
import { root } from './root.ts';

export interface ChatParts {
  readonly generate: Generate;
  readonly clock: Clock;
  readonly limits: () => { readonly holdHeadersSeconds: number; readonly requestSeconds: number; readonly streamSeconds: number };
}

/** `POST /chat/completions`. */
export function chatRoute(parts: ChatParts): Route {
  return {
    method: 'POST',
    path: `${root}/chat/completions`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Answers a conversation, whole or as server-sent events.',
    input: ChatRequest,
    output: ChatCompletion,
    async answer(asked) {
      const { exchange } = asked;
      const chat = chatOf(asked);
      const { call, context } = chat;
      const { requestSeconds, streamSeconds } = parts.limits();
      exchange.expire(call.stream ? streamSeconds : requestSeconds);
      try {
        await (call.stream ? stream(parts, exchange, chat) : whole(parts, exchange, chat));
      } catch (error) {
        exchange.refusalHeaders = [...answerHeaders(context.progress, undefined), ...whoAnswered(context.progress)];
        throw error;
      } finally {
        const { attempts } = context.progress;
        const last = attempts.at(-1);
        exchange.notes = { model: call.model.slice(0, 100), ...(last ? { provider: last.provider, attempts: attempts.length } : {}) };
      }
    },
  };
}

/** A request as it was understood. */
interface Chat {
  readonly call: GenerateCall;
  readonly context: Context;
  readonly usageWanted: boolean;
  /** The call with its lane, where the client's bytes may go upstream as they came. */
  withLane(sink: Pick<Lane, 'write' | 'drained'>): GenerateCall;
}

function chatOf(asked: Asked): Chat {
  const { exchange, caller, json, bytes, places } = asked;
  const { app, body } = unlabelled(json);
  const { call, usageWanted, asItCame } = decodeRequest(body);
  const beta = exchange.header('openai-beta');
  const context: Context = {
    requestId: exchange.id,
    step: 0,
    caller,
    face: 'chatcompat',
    app: (app ?? exchange.header('x-app-name') ?? caller.keyName).slice(0, 100),
    signal: exchange.signal,
    strict: exchange.header('x-dragoman-strict') === 'true',
    headers: beta === undefined ? {} : { 'openai-beta': beta },
    progress: { attempts: [] },
  };
  return {
    call,
    context,
    usageWanted,
    withLane: (sink) => (asItCame && body === json ? { ...call, lane: { dialect: 'openai-chat', body: bytes, places, usageWanted, ...sink } } : call),
  };
}

/** `app_name` is for our books and does not go upstream. */
function unlabelled(json: unknown): { app?: string; body: unknown } {
  if (json === null || typeof json !== 'object' || !Object.hasOwn(json, 'app_name')) return { body: json };
  const { app_name: app, ...body } = json as { readonly app_name?: unknown };
  if (typeof app !== 'string') throw new Fault('invalid', 'app_name must be a string.', { field: 'app_name' });
  return { app, body };
}

async function whole({ generate, clock }: ChatParts, exchange: Exchange, { context, withLane }: Chat): Promise<void> {
  let passed: Uint8Array | undefined;
  const sink = {
    write(bytes: Uint8Array) {
      passed = bytes;
      return true;
    },
    drained: () => Promise.resolve(),
  };
  const said: GenerateEvent[] = [];
  for await (const event of generate(withLane(sink), context)) said.push(event);
  const headers = answerHeaders(
    context.progress,
    said.find((event) => event.type === 'started'),
  );
  if (passed) exchange.send(200, ['content-type', 'application/json', ...headers], passed);
  else exchange.sendJson(200, encodeResult(fold(said), { id: completionId(exchange), created: seconds(clock) }), headers);
}

async function stream({ generate, clock, limits }: ChatParts, exchange: Exchange, { context, usageWanted, withLane }: Chat): Promise<void> {
  let started: Started | undefined;
  let passing = false;
  const out = new EventStream(exchange, {
    clock,
    holdSeconds: limits().holdHeadersSeconds,
    keepAlive: ': keep-alive\n\n',
    contentType: 'text/event-stream; charset=utf-8',
    headers: (early) => answerHeaders(context.progress, early ? undefined : started),
  });
  const frames = encoder({ id: completionId(exchange), created: seconds(clock), usageWanted });
  try {
    for await (const event of generate(withLane({ write: (bytes) => out.write(bytes), drained: () => out.drained() }), context)) {
      if (event.type === 'started') started = event;
      if (event.type === 'passed') passing = true;
      const text = passing ? '' : frames.encode(event);
      if (text !== '' && !out.write(text)) await out.drained();
    }
    out.end(passing ? 'data: [DONE]\n\n' : frames.end());
  } catch (error) {
    if (!exchange.opened || exchange.left) throw error;
    out.write(encodeFaultFrame(faultOf(error)));
    exchange.end();
    throw error;
  } finally {
    out.close();
  }
}

const completionId = (exchange: Exchange) => `chatcmpl-${exchange.id.slice(4)}`;
const seconds = (clock: Clock) => Math.floor(clock.now() / 1000);
