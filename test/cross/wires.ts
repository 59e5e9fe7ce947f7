import { decodeRequest as decodeMessages } from '#dialects/anthropic/decode-request';
import { encodeRequest as encodeMessages } from '#dialects/anthropic/encode-request';
import * as messagesEvents from '#dialects/anthropic/events';
import * as messagesRecordings from '#dialects/anthropic/recordings/read';
import * as messagesResult from '#dialects/anthropic/result';
import { decodeRequest as decodeGemini } from '#dialects/gemini/decode-request';
import { encodeRequest as encodeGemini } from '#dialects/gemini/encode-request';
import * as geminiEvents from '#dialects/gemini/events';
import { eventFraming } from '#dialects/gemini/framing';
import * as geminiRecordings from '#dialects/gemini/recordings/read';
import * as geminiResult from '#dialects/gemini/result';
import { decodeRequest as decodeChat } from '#dialects/openai/chat/decode-request';
import { encodeRequest as encodeChat } from '#dialects/openai/chat/encode-request';
import * as chatEvents from '#dialects/openai/chat/events';
import * as chatRecordings from '#dialects/openai/chat/recordings/read';
import * as chatResult from '#dialects/openai/chat/result';
import { nothingBefore, turnsOf } from '#dialects/openai/responses/decode-input';
import { callOf, requestOf } from '#dialects/openai/responses/decode-request';
import { decoder as responsesDecoder } from '#dialects/openai/responses/decoder';
import { encodeRequest as encodeResponses } from '#dialects/openai/responses/encode-request';
import { Encoder } from '#dialects/openai/responses/encoder';
import * as responsesRecordings from '#dialects/openai/responses/recordings/read';
import { queued } from '#dialects/openai/responses/response';
import * as responsesResult from '#dialects/openai/responses/result';
import { splitter } from '#kit/upstream/sse';
import type { GenerateCall } from '#core/call';
import type { GenerateEvent } from '#core/event';
import type { GenerateResult } from '#core/fold';
import type { JsonObject } from '#core/json';

/** The four wire formats, each as what a provider speaks and as what a client is shown, all with the same verbs. */
export interface CrossedWire {
  readonly name: string;
  readonly recordings: { readonly streams: readonly Stream[]; readonly wholes: readonly Whole[] };
  /** A provider's stream → events. */
  readStream(bytes: Uint8Array): readonly GenerateEvent[];
  /** A provider's whole answer → events. */
  readWhole(body: unknown): readonly GenerateEvent[];
  /** Events → the body of a stream as a client gets it. */
  sayStream(events: readonly GenerateEvent[]): string;
  /** An answer → the body of a whole answer as a client gets it. */
  sayWhole(result: GenerateResult): JsonObject;
  /** What a client sends → call. */
  readRequest(body: unknown): GenerateCall;
  /** Call → what a provider is sent. */
  sayRequest(call: GenerateCall): { readonly body: JsonObject; readonly ignored: readonly string[] };
}

interface Stream {
  readonly name: string;
  readonly bytes: Uint8Array;
}

interface Whole {
  readonly name: string;
  readonly body: unknown;
}

interface Decoder {
  decode(line: string): readonly GenerateEvent[];
  end(): readonly GenerateEvent[];
}

export const model = 'm';
const id = 'resp_0123456789abcdefghijkl';
const identity = { id, created: 1_800_000_000 };

/** The data of each frame. */
export function linesOf(bytes: Uint8Array): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 24 });
  return [...push(bytes), ...end()];
}

function read(bytes: Uint8Array, { decode, end }: Decoder): readonly GenerateEvent[] {
  return [...linesOf(bytes).flatMap((line) => decode(line)), ...end()];
}

function say(events: readonly GenerateEvent[], encoder: { encode(event: GenerateEvent): string; end(): string }): string {
  return events.map((event) => encoder.encode(event)).join('') + encoder.end();
}

const answering = () => ({ response: queued(requestOf({ model, input: 'x' }), identity, false), encrypted: true, now: () => 1_800_000_009 });

export const chat: CrossedWire = {
  name: 'openai-chat',
  recordings: { streams: chatRecordings.answered, wholes: chatRecordings.wholes },
  readStream: (bytes) => read(bytes, chatEvents.decoder(model)),
  readWhole: (body) => chatResult.decodeResult(body, model),
  sayStream: (events) => say(events, chatEvents.encoder({ ...identity, usageWanted: true })),
  sayWhole: (result) => chatResult.encodeResult(result, identity),
  readRequest: (body) => decodeChat(body).call,
  sayRequest: (call) => encodeChat(call, model),
};

export const responses: CrossedWire = {
  name: 'openai-responses',
  recordings: responsesRecordings,
  readStream: (bytes) => read(bytes, responsesDecoder(model)),
  readWhole: (body) => responsesResult.decodeResult(body, model),
  sayStream(events) {
    const encoder = new Encoder(answering());
    return events.map((event) => encoder.encode(event)).join('') + encoder.finish() + encoder.last(true);
  },
  sayWhole: (result) => responsesResult.encodeResult(result, answering()),
  readRequest(body) {
    const request = requestOf(body);
    return callOf(request, turnsOf(request.input, nothingBefore));
  },
  sayRequest: (call) => encodeResponses(call, model),
};

export const messages: CrossedWire = {
  name: 'anthropic-messages',
  recordings: { streams: messagesRecordings.answered, wholes: messagesRecordings.wholes },
  readStream: (bytes) => read(bytes, messagesEvents.decoder(model)),
  readWhole: (body) => messagesResult.decodeResult(body, model),
  sayStream: (events) => say(events, messagesEvents.encoder(id)),
  sayWhole: (result) => messagesResult.encodeResult(result, id),
  readRequest: (body) => decodeMessages(body),
  sayRequest: (call) => encodeMessages(call, model),
};

export const gemini: CrossedWire = {
  name: 'gemini',
  recordings: { streams: geminiRecordings.answered, wholes: geminiRecordings.wholes },
  readStream: (bytes) => read(bytes, geminiEvents.decoder(model)),
  readWhole: (body) => geminiResult.decodeResult(body, model),
  sayStream: (events) => say(events, geminiEvents.encoder(id, eventFraming())),
  sayWhole: (result) => geminiResult.encodeResult(result, id),
  readRequest: (body) => decodeGemini(body, { model, stream: false }),
  sayRequest: (call) => encodeGemini(call),
};

export const wires: readonly CrossedWire[] = [chat, responses, messages, gemini];
