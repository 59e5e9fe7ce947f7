import type { GenerateCall } from '#core/call';
import type { Turn } from '#core/conversation';
import type { Embed } from '#core/embed';
import type { Context } from '#core/context';
import type { Events } from '#core/event';
import { steps } from '#core/steps';
import { inBothVerbs, wholeAnswer, type Generate } from '#core/generate';
import type { AnswerReader, PromptLog, ToldRequest } from '#core/prompt-log';

/**
 * Tells the prompt log what was asked and answered, as the client wrote and saw it: it is outside all rules that change either. Calls that were never admitted
 * are not told of.
 */
export function promptLogged(log: PromptLog, inner: Generate): Generate {
  return inBothVerbs(
    async function* (call, context) {
      const heard = new Heard(log, call);
      try {
        for await (const events of inner(heard.overhearing(call), context)) {
          heard.take(events);
          yield events;
        }
      } finally {
        heard.tell(call, context);
      }
    },
    async (call, context) => {
      const heard = new Heard(log, call);
      try {
        const events = await wholeAnswer(inner, heard.overhearing(call), context);
        heard.take(events);
        return events;
      } finally {
        heard.tell(call, context);
      }
    },
  );
}

/** The same for embeddings: the prompt is their first text, and there is no answer in words. */
export const promptLoggedEmbed =
  (log: PromptLog, inner: Embed): Embed =>
  async (call, context) => {
    try {
      return await inner(call, context);
    } finally {
      const [first] = call.inputs;
      const prompt = typeof first === 'string' ? first : '';
      if (isOwn(context)) log.tell(toldOf(log, context, prompt, () => ({ text: '', length: 0 })));
    }
  };

/** Was the call made, and is it that of the request? Others prepare it: they word a question anew, or look it up. */
const isOwn = ({ step, progress }: Context): boolean => progress.booked !== undefined && step < steps.own.each;

/** Bytes of a forwarded stream that are kept before they are read. */
const unreadBytes = 16_384;

/** An answer as it is overheard: what is said of the first candidate, as much as is kept. */
class Heard {
  readonly #log: PromptLog;
  readonly #dialect: string;
  readonly #stream: boolean;
  #text = '';
  #length = 0;
  #frames: Uint8Array[] = [];
  #unread = 0;
  #bytes = 0;
  #readBytes = 0;
  #reader: AnswerReader | undefined;

  constructor(log: PromptLog, { passthrough, stream }: GenerateCall) {
    this.#log = log;
    this.#dialect = passthrough?.dialect ?? '';
    this.#stream = stream;
  }

  /** The call, with what is forwarded of its answer told here too. */
  overhearing(call: GenerateCall): GenerateCall {
    const { passthrough } = call;
    if (!passthrough) return call;
    const write: typeof passthrough.write = (bytes) => {
      this.#overhear(bytes);
      return passthrough.write(bytes);
    };
    return { ...call, passthrough: { ...passthrough, write } };
  }

  take(events: Events): void {
    for (const event of events) {
      if (event.type === 'passed' && event.text !== undefined) this.#isTold(event.text);
      if ((event.type !== 'text' && event.type !== 'refusal') || event.candidate !== 0) continue;
      this.#length += event.text.length;
      if (this.#text.length < this.#log.most) this.#text += event.text.slice(0, this.#log.most - this.#text.length);
    }
  }

  /** What was forwarded need not be read. */
  #isTold(text: string): void {
    this.#text = beginning(text, this.#log.most);
    this.#length = text.length;
    this.#frames = [];
    this.#unread = 0;
    this.#bytes = 0;
  }

  #overhear(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    if (this.#text.length > this.#log.most) return;
    this.#frames.push(bytes);
    this.#unread += bytes.length;
    if (this.#stream && this.#unread >= unreadBytes) this.#read();
  }

  #read(): void {
    const reader = (this.#reader ??= this.#log.reader(this.#dialect, this.#stream));
    for (const bytes of this.#frames) this.#text += reader.read(bytes);
    this.#readBytes += this.#unread;
    this.#frames = [];
    this.#unread = 0;
  }

  /** The call is over. */
  tell({ asked, turns }: GenerateCall, context: Context): void {
    if (!isOwn(context)) return;
    if (this.#unread > unreadBytes) this.#read();
    this.#log.tell(toldOf(this.#log, context, asked ?? promptOf(turns), () => this.#answer()));
  }

  /** What was forwarded last is read now, when nobody waits any more. */
  #answer(): Answer {
    if (this.#bytes === 0) return { text: this.#text, length: this.#length };
    if (this.#unread > 0) this.#read();
    const length = this.#readBytes === 0 ? 0 : Math.round((this.#text.length * this.#bytes) / this.#readBytes);
    return { text: this.#text.slice(0, this.#log.most), length };
  }
}

type Answer = ReturnType<ToldRequest['answer']>;

const toldOf = ({ most }: PromptLog, { requestId, caller, address = '' }: Context, prompt: string, answer: () => Answer): ToldRequest => ({
  requestId,
  userId: caller.userId,
  address,
  prompt: beginning(prompt, most),
  promptLength: prompt.length,
  answer,
});

/** A copy, which keeps nothing of a long text in memory. */
const beginning = (text: string, most: number): string => (text.length <= most ? text : Buffer.from(text.slice(0, most)).toString('utf8'));

/** The text of the last turn in which the user wrote some. */
function promptOf(turns: readonly Turn[]): string {
  for (let at = turns.length - 1; at >= 0; at--) {
    const { role, parts } = turns[at]!;
    if (role !== 'user') continue;
    const texts = parts.flatMap((part) => (part.type === 'text' && part.text !== '' ? part.text : []));
    if (texts.length > 0) return texts.length === 1 ? texts[0]! : texts.join('\n');
  }
  return '';
}
