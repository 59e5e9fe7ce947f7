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
import type { Started } from '#model/event';
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
    summary: 'Answers a conversation, whole or as server-sent events.',
    input: ChatRequest,
    output: ChatCompletion,
    async answer(asked) {
      const { call, usageWanted } = decodeRequest(asked.json);
      const { exchange } = asked;
      const context = contextOf(asked);
      const { requestSeconds, streamSeconds } = parts.limits();
      exchange.expire(call.stream ? streamSeconds : requestSeconds, () => new Fault('timed-out', 'The answer took too long.'));
      try {
        await (call.stream ? stream(parts, asked, call, context, usageWanted) : whole(parts, asked, call, context));
      } catch (error) {
        exchange.refusalHeaders = [...answerHeaders(context.progress, undefined), ...whoAnswered(context.progress)];
        throw error;
      } finally {
        const last = context.progress.attempts.at(-1);
        exchange.notes = { model: call.model.slice(0, 100), ...(last ? { provider: last.provider, attempts: context.progress.attempts.length } : {}) };
      }
    },
  };
}

function contextOf({ exchange, caller, json }: Asked): Context {
  const beta = exchange.header('openai-beta');
  const body = json as { readonly app_name?: unknown };
  const app = typeof body.app_name === 'string' ? body.app_name : exchange.header('x-app-name');
  return {
    requestId: exchange.id,
    step: 0,
    caller,
    face: 'chatcompat',
    app: (app ?? caller.keyName).slice(0, 100),
    signal: exchange.signal,
    strict: exchange.header('x-dragoman-strict') === 'true',
    headers: beta === undefined ? {} : { 'openai-beta': beta },
    progress: { attempts: [] },
  };
}

async function whole({ generate, clock }: ChatParts, { exchange, bytes: body, places }: Asked, call: GenerateCall, context: Context): Promise<void> {
  let passed: Uint8Array | undefined;
  const lane: Lane = {
    dialect: 'openai-chat',
    body,
    places,
    usageWanted: true,
    write(bytes) {
      passed = bytes;
      return true;
    },
    drained: () => Promise.resolve(),
  };
  const result = await fold(generate({ ...call, lane }, context));
  const headers = answerHeaders(context.progress, result.started);
  if (passed) exchange.send(200, ['content-type', 'application/json', ...headers], passed);
  else exchange.sendJson(200, encodeResult(result, { id: completionId(exchange), created: seconds(clock) }), headers);
}

async function stream({ generate, clock, limits }: ChatParts, { exchange, bytes: body, places }: Asked, call: GenerateCall, context: Context, usageWanted: boolean): Promise<void> {
  let started: Started | undefined;
  let passing = false;
  const out = new EventStream(exchange, {
    clock,
    holdSeconds: limits().holdHeadersSeconds,
    keepAlive: ': keep-alive\n\n',
    contentType: 'text/event-stream; charset=utf-8',
    headers: (early) => answerHeaders(context.progress, early ? undefined : started),
  });
  const lane: Lane = { dialect: 'openai-chat', body, places, usageWanted, write: (bytes) => out.write(bytes), drained: () => out.drained() };
  const frames = encoder({ id: completionId(exchange), created: seconds(clock), usageWanted });
  try {
    for await (const event of generate({ ...call, lane }, context)) {
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
