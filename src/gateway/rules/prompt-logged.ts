import { copied } from '#kit/text/copied';
import { withoutHalf } from '#kit/text/surrogates';
import type { GenerateCall } from '#core/call';
import type { Turn } from '#core/conversation';
import type { Context } from '#core/context';
import type { Events } from '#core/event';
import { steps } from '#core/steps';
import { inBothVerbs, wholeAnswer, type Generate } from '#core/generate';
import type { PromptLog, ToldRequest } from '#core/prompt-log';

/**
 * Tells the prompt log what was asked and answered, as the client wrote and saw it: it is outside all rules that change either. Calls that were never admitted
 * are not told of.
 */
export function promptLogged(log: PromptLog, inner: Generate): Generate {
  return inBothVerbs(
    async function* (call, context) {
      const heard = new Heard(log);
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
      const heard = new Heard(log);
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

/** The same for a task: its prompt is logged, and its answer is not. @param promptIn the texts of a call that its prompt consists of */
export const promptLoggedTask =
  <Asked, More extends readonly unknown[], Done>(
    log: PromptLog,
    promptIn: (call: Asked) => readonly string[],
    inner: (call: Asked, ...more: [...More, Context]) => Promise<Done>,
  ) =>
  async (call: Asked, ...more: [...More, Context]): Promise<Done> => {
    try {
      return await inner(call, ...more);
    } finally {
      const context = more.at(-1) as Context;
      if (isOwn(context)) log.tell(toldOf(log, context, promptIn(call), { text: '', length: 0 }));
    }
  };

/** Was the call made, and is it that of the request? Others prepare it: they word a question anew, or look it up. */
const isOwn = ({ step, progress }: Context): boolean => progress.booked !== undefined && step < steps.own.each;

/** An answer as it is overheard: what is said of the first candidate, as much as is kept. */
class Heard {
  readonly #log: PromptLog;
  /** Characters that are kept. */
  readonly #most: number;
  #text = '';
  #length = 0;
  #pieces = 0;

  constructor(log: PromptLog) {
    this.#log = log;
    this.#most = log.most;
  }

  /** The call, with what is forwarded of its answer told here too. */
  overhearing(call: GenerateCall): GenerateCall {
    const { passthrough } = call;
    return passthrough && call.stream ? { ...call, passthrough: { ...passthrough, heard: (text) => this.#add(text) } } : call;
  }

  take(events: Events): void {
    for (const event of events) {
      if (event.type === 'passed') this.#add(event.text ?? '');
      if ((event.type === 'text' || event.type === 'refusal') && event.candidate === 0) this.#add(event.text);
    }
  }

  #add(text: string): void {
    this.#length += text.length;
    const room = this.#most - this.#text.length;
    if (room <= 0 || text === '') return;
    this.#text += text.slice(0, room);
    if (++this.#pieces % 16 === 0) this.#text = copied(this.#text);
  }

  tell({ asked, turns }: GenerateCall, context: Context): void {
    if (isOwn(context))
      this.#log.tell(toldOf(this.#log, context, asked === undefined ? promptOf(turns) : [asked], { text: withoutHalf(this.#text), length: this.#length }));
  }
}

/** @param texts parts of the prompt, which are lines of it */
function toldOf({ most }: PromptLog, { requestId, caller, address = '' }: Context, texts: readonly string[], answer: ToldRequest['answer']): ToldRequest {
  let prompt = '';
  let promptLength = 0;
  for (const [at, text] of texts.entries()) {
    const before = at === 0 ? '' : '\n';
    if (prompt.length < most) prompt += before + text.slice(0, most);
    promptLength += before.length + text.length;
  }
  return { requestId, userId: caller.userId, address, prompt: withoutHalf(prompt.slice(0, most)), promptLength, answer };
}

/** The texts of the last turn in which the user wrote some. */
function promptOf(turns: readonly Turn[]): readonly string[] {
  for (let at = turns.length - 1; at >= 0; at--) {
    const { role, parts } = turns[at]!;
    if (role !== 'user') continue;
    const texts: string[] = [];
    for (const part of parts) if (part.type === 'text' && part.text !== '') texts.push(part.text);
    if (texts.length > 0) return texts;
  }
  return [];
}
