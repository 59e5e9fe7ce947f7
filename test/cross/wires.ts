import { messages as messagesDialect } from '#dialects/anthropic/index';
import type { Dialect, WireTypes } from '#dialects/dialect';
import { eventFraming } from '#dialects/gemini/framing';
import { gemini as geminiDialect } from '#dialects/gemini/index';
import { chat as chatDialect } from '#dialects/openai/chat/index';
import { nothingBefore } from '#dialects/openai/responses/decode-input';
import { requestOf } from '#dialects/openai/responses/decode-request';
import { responses as responsesDialect } from '#dialects/openai/responses/index';
import { queued } from '#dialects/openai/responses/response';
import { splitter } from '#kit/upstream/sse';
import type { GenerateCall } from '#core/call';
import type { GenerateEvent } from '#core/event';
import type { Fault } from '#core/fault';
import type { GenerateResult } from '#core/fold';
import type { JsonObject } from '#core/json';
import { chatRecordings, geminiRecordings, messagesRecordings, responsesRecordings, type Recordings } from '../support/recordings.ts';

/** The four wire formats, each as what a provider speaks and as what a client is shown, all with the same verbs. */
export interface CrossedWire {
  readonly name: string;
  readonly recordings: Pick<Recordings, 'answered' | 'wholes'>;
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
  sayRequest(call: GenerateCall): { readonly body: JsonObject; readonly ignored: readonly string[]; readonly unpromised?: boolean };
  /** What a provider is sent, one request after the other, that refuses each of them with the same fault. At most five. */
  sayRefused(call: GenerateCall, fault: Fault): readonly JsonObject[];
}

export const model = 'm';
const id = 'resp_0123456789abcdefghijkl';
const identity = { id, created: 1_800_000_000 };

/** The data of each frame. */
export function linesOf(bytes: Uint8Array): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 24 });
  return [...push(bytes), ...end()];
}

/** What a wire is crossed with besides its dialect. */
interface Crossing<Wire extends WireTypes> {
  readonly recordings: CrossedWire['recordings'];
  readonly outside: Wire['outside'];
  /** Made anew for each answer: some have state. */
  readonly answer: () => Wire['answer'];
}

function crossed<Wire extends WireTypes>(dialect: Dialect<Wire>, { recordings, outside, answer }: Crossing<Wire>): CrossedWire {
  return {
    name: dialect.name,
    recordings,
    readStream(bytes) {
      const reading = dialect.decoder(model);
      return [...linesOf(bytes).flatMap((line) => reading.decode(line)), ...reading.end()];
    },
    readWhole: (body) => dialect.decodeResult(body, model),
    sayStream(events) {
      const encoder = dialect.encoder(answer());
      return events.map((event) => encoder.encode(event)).join('') + encoder.end();
    },
    sayWhole: (result) => dialect.encodeResult(result, answer()),
    readRequest: (body) => dialect.decodeRequest(body, outside),
    sayRequest: (call) => dialect.encodeRequest(call, model),
    sayRefused(call, fault) {
      const bodies: JsonObject[] = [];
      let quirks: Wire['quirks'] | undefined;
      do {
        bodies.push(dialect.encodeRequest(call, model, quirks).body);
        quirks = dialect.learn(fault, call, quirks);
      } while (quirks && bodies.length < 5);
      return bodies;
    },
  };
}

export const chat = crossed(chatDialect, {
  recordings: chatRecordings,
  outside: undefined,
  answer: () => ({ ...identity, usageWanted: true }),
});

export const responses = crossed(responsesDialect, {
  recordings: responsesRecordings,
  outside: nothingBefore,
  answer: () => ({ response: queued(requestOf({ model, input: 'x' }), identity, false), encrypted: true, sources: false, now: () => 1_800_000_009 }),
});

export const messages = crossed(messagesDialect, {
  recordings: messagesRecordings,
  outside: undefined,
  answer: () => ({ id }),
});

export const gemini = crossed(geminiDialect, {
  recordings: geminiRecordings,
  outside: { model, stream: false },
  answer: () => ({ id, framing: eventFraming() }),
});

export const wires: readonly CrossedWire[] = [chat, responses, messages, gemini];
