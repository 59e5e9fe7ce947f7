import { type Envelope, wrapped } from './envelopes.ts';
import { inKnownWords } from './known-words.ts';
import { nativeRefusal } from '../native-fault.ts';
import { answerCall, contextOf, type GeneratingDeps, type Words } from '../answer.ts';
import type { Fault } from '#core/fault';
import type { GenerateEvent } from '#core/event';
import type { Clock } from '#kit/async/clock';
import { fold } from '#core/fold';
import { shownOf } from '#core/shown-media';
import type { Conversation } from '#http/noun-route';
import type { Asked } from '#http/route';

/** What stands between two objects of a stream, and what it becomes within one. */
const delimiter = '@|@sep@|@';
const escapedDelimiter = '@|@@sep@@|@';
/** One that overlaps another, of which only every second is escaped: the same text in JSON. */
const overlappingDelimiter = String.raw`@|@\u0073ep@|@`;
const textType = 'text/plain; charset=utf-8';

export interface ConversationSettings extends Omit<GeneratingDeps, 'generate'> {
  readonly envelope: Envelope;
  /** Puts the names in that clients know. */
  readonly named: (answer: object) => object;
}

/** Answers a question on the open connection: as one object, or as objects with delimiters between them, or as server-sent events. @throws Fault */
export function answerConversation({ envelope, named, ...deps }: ConversationSettings, asked: Asked, conversation: Conversation): Promise<void> {
  const { exchange } = asked;
  const accepts = exchange.header('accept') ?? '';
  const isEvents = /\btext\/event-stream\b/i.test(accepts.slice(0, 1000));
  const stream = conversation.streams ?? isEvents;
  const context = contextOf(asked, 'native', conversation.app, []);
  const shown = (answer: object) => named(wrapped(envelope, answer));
  const framing = isEvents ? events : delimited();
  const words: Words = {
    whole: async (result) => shown(await conversation.whole(result, context)),
    frames: () => framesOf(framing, { conversation, clock: deps.clock, need: (bytes) => exchange.need(bytes), shown, whole: (result) => words.whole(result) }),
    ...(framing.contentType === undefined ? {} : { framing: { contentType: framing.contentType, keepAlive: '\n' } }),
    ...(envelope.isText ? { wholeType: textType } : {}),
    fault: (fault) =>
      framing.framed({ ...shown(conversation.soFar('')), ...nativeRefusal(inKnownWords(fault), exchange.id), type: 'completion' } satisfies FaultFrame),
    fieldOf: (field) => fieldNames[field] ?? field,
  };
  return answerCall({ ...deps, generate: conversation.generate }, exchange, { call: { ...conversation.call, stream }, context, words });
}

type FaultFrame = ReturnType<typeof nativeRefusal> & { readonly type: 'completion' } & Pick<Fault, 'status'>;

/** Fields of a call that have other names here. */
const fieldNames: Readonly<Record<string, string>> = { messages: 'message', contents: 'message', input: 'message', system: 'system_prompt' };

interface Framing {
  readonly contentType?: string;
  readonly framed: (value: object) => string;
  /** Sends only what is new. */
  readonly isByPiece: boolean;
}

const events: Framing = { framed: (value) => `data: ${JSON.stringify(value)}\n\n`, isByPiece: true };

/** Objects with delimiters between them; what keeps the connection alive is a line break, which JSON allows around each. */
export function delimited(): Framing {
  let isFirst = true;
  return {
    contentType: textType,
    isByPiece: false,
    framed(value) {
      const text = JSON.stringify(value).replaceAll(delimiter, escapedDelimiter).replaceAll(delimiter, overlappingDelimiter);
      const before = isFirst ? '' : delimiter;
      isFirst = false;
      return before + text;
    },
  };
}

interface FramesDeps {
  readonly conversation: Conversation;
  readonly clock: Clock;
  readonly need: (bytes: number) => void;
  readonly shown: (answer: object) => object;
  readonly whole: (result: ReturnType<typeof fold>) => unknown;
}

const apartMilliseconds = 100;
/** Characters of an answer for each millisecond between two frames that hold all of it: its frames together stay a small multiple of it. */
const charactersPerMillisecond = 160;
/** Characters that are sent at any pace once they are twice those of the frame before: only what is sent shows that the client does not read, and the provider is to wait. */
const muchText = 1_048_576;

function framesOf({ framed, isByPiece }: Framing, { conversation, clock, need, shown, whole }: FramesDeps): ReturnType<Words['frames']> {
  const kept: GenerateEvent[] = [];
  let text = '';
  let lastAt = -Infinity;
  let lastLength = 0;
  return {
    encode(event) {
      keep(kept, event, need);
      const more = 'candidate' in event && event.candidate === 0 ? shownOf(event) : '';
      if (more === '') return '';
      text += more;
      if (isByPiece) return framed({ type: 'yield', delta: text === more ? conversation.before + text : more });
      const now = clock.monotonic();
      const isSoon = now - lastAt < Math.max(apartMilliseconds, text.length / charactersPerMillisecond);
      if (isSoon && text.length < Math.max(muchText, 2 * lastLength)) return '';
      [lastAt, lastLength] = [now, text.length];
      return framed(shown(conversation.soFar(text)));
    },
    async end() {
      const answer = await whole(fold(kept));
      return framed(answer as object);
    },
  };
}

/** A text goes on in the event before it: an answer has as many events as tokens. */
function keep(kept: GenerateEvent[], event: GenerateEvent, need: FramesDeps['need']): void {
  const last = kept.at(-1);
  if ('text' in event) need(event.text.length * 2);
  else if (event.type === 'tool-call') need(event.json.length * 2);
  const isPlain = event.type === 'text' && !event.extra && !event.citations && !event.logprobs;
  if (isPlain && last?.type === 'text' && last.candidate === event.candidate && !last.extra && !last.citations && !last.logprobs)
    kept[kept.length - 1] = { ...last, text: last.text + event.text };
  else kept.push(event);
}
