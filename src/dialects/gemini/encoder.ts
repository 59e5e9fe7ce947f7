import { isWholeObject } from '#kit/json/foreign';
import type { FinishReason, GenerateEvent, Started, ToolCallPiece, TokenLogprob, Usage } from '#core/event';
import { own, type Extra, type JsonObject } from '#core/json';
import type { Encoder } from '../dialect.ts';
import { cutCallIn } from '../shared/arguments.ts';
import { mostQuotable, TextEnds } from '../shared/text-ends.ts';
import { callPart, candidatesIn, endedCandidate, isHidden, mediaPart, tailOf, thoughtPart, usageOrNone, type Ending } from './encode-answer.ts';
import type { Framing } from './framing.ts';
import { Grounding, searchOf } from './grounding.ts';
import { encodeLogprobs } from './logprobs.ts';
import { dialect } from './wire.ts';

/** What an answer is encoded with in addition to its events. */
export interface ContentAnswer {
  /** The answer's id, unless its upstream spoke this wire and sent one itself. */
  readonly id: string;
  readonly framing: Framing;
  /** The client did not ask for thoughts (`includeThoughts`): it gets none. */
  readonly hidesThoughts?: boolean;
}

/** Events → chunks. A function call is sent once it is whole; the last chunk has the finish reasons with the usage. */
export const encoder = ({ id, framing, hidesThoughts = false }: ContentAnswer): Encoder => new Chunks(id, framing, hidesThoughts);

class Chunks implements Encoder {
  readonly #id: string;
  readonly #framing: Framing;
  readonly #hidesThoughts: boolean;
  #tail = '}';
  #started: Started = { type: 'started', model: '', ignored: [] };
  #open = new Map<number, Call[]>(); // the open function calls of each candidate
  #endings: Ending[] = [];
  #usage: Usage | undefined;
  readonly #room = { left: mostQuotable };
  readonly #grounding = new Map<number, Grounding>(); // by candidate
  readonly #ends = new TextEnds();

  constructor(id: string, framing: Framing, hidesThoughts: boolean) {
    this.#id = id;
    this.#hidesThoughts = hidesThoughts;
    this.#framing = framing;
  }

  encode(event: GenerateEvent): string {
    if ('candidate' in event && this.#ends.take(event)) this.#groundingOf(event.candidate).text('', []);
    switch (event.type) {
      case 'started':
        this.#started = event;
        this.#tail = `,${JSON.stringify(tailOf(event, this.#id)).slice(1)}`;
        return '';
      case 'text':
        this.#groundingOf(event.candidate).text(event.text, event.citations ?? (event.extra ? [] : undefined));
        return this.#part(event.candidate, { text: event.text, ...own(event.extra, dialect) }, event.logprobs);
      case 'thought':
        return this.#hidesThoughts && isHidden(event) ? '' : this.#part(event.candidate, thoughtPart(event));
      case 'refusal':
        return this.#part(event.candidate, { text: event.text });
      case 'tool-call':
        return this.#callPiece(event);
      case 'part': {
        const search = searchOf(event.part);
        if (search) {
          this.#groundingOf(event.candidate).search(search);
          return '';
        }
        const part =
          event.part.type === 'media' ? mediaPart(event.part) : event.part.type === 'foreign' && event.part.dialect === dialect ? event.part.value : undefined;
        return part ? this.#part(event.candidate, part) : '';
      }
      case 'finished':
        this.#endings.push(event);
        return this.#close(event.candidate, event.reason);
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'passed':
        return '';
      default:
        return event satisfies never;
    }
  }

  end(): string {
    const rest = Array.from(this.#open.keys(), (candidate) => this.#close(candidate)).join('');
    const endings: readonly Ending[] = this.#endings.length > 0 ? this.#endings : [{ candidate: 0, reason: 'stop', raw: '' }];
    // Google's SDK treats a chunk without a part as an invalid answer, and drops the turn from its chat history.
    const ended = candidatesIn(endings, (one) => ({
      ...this.#grounding.get(one.candidate)?.metadata(own(one.extra, dialect)),
      ...endedCandidate(one, [{ text: '' }]),
    }));
    return (
      rest +
      this.#framing.chunk(JSON.stringify({ ...ended, usageMetadata: usageOrNone(this.#usage), ...tailOf(this.#started, this.#id) })) +
      this.#framing.end()
    );
  }

  #groundingOf(candidate: number): Grounding {
    let grounding = this.#grounding.get(candidate);
    if (!grounding) this.#grounding.set(candidate, (grounding = new Grounding(this.#room)));
    return grounding;
  }

  /** Empty parts are left out. */
  #part(candidate: number, part: JsonObject, logprobs?: readonly TokenLogprob[]): string {
    const before = this.#closeWhole(candidate);
    if (part['text'] === '' && !logprobs && Object.keys(part).length === (part['thought'] ? 2 : 1)) return before;
    return before + this.#chunk(candidate, part, logprobs);
  }

  #chunk(candidate: number, part: JsonObject, logprobs?: readonly TokenLogprob[]): string {
    const scored = logprobs ? `,"logprobsResult":${JSON.stringify(encodeLogprobs(logprobs))}` : '';
    return this.#framing.chunk(`{"candidates":[{"content":{"parts":[${JSON.stringify(part)}],"role":"model"},"index":${candidate}${scored}}]${this.#tail}`);
  }

  /** Fragments of several calls may be interleaved: a call is buffered until it is complete. */
  #callPiece({ candidate, call, id, name, json, extra }: ToolCallPiece): string {
    const open = this.#open.get(candidate) ?? [];
    const known = open.find((one) => one.call === call);
    if (known) {
      known.json += json;
      return '';
    }
    if (name === undefined) return ''; // the call was closed by other content
    const whole = this.#closeWhole(candidate);
    this.#open.set(candidate, [...(this.#open.get(candidate) ?? []), { call, id, name, json, ...(extra ? { extra } : {}) }]);
    return whole;
  }

  /** Emits the open calls once all of them are complete. */
  #closeWhole(candidate: number): string {
    return this.#open.get(candidate)?.every(({ json }) => isWholeObject(json)) ? this.#close(candidate) : '';
  }

  /** @param reason why the answer ends, where it does */
  #close(candidate: number, reason: FinishReason = 'tool'): string {
    const open = this.#open.get(candidate);
    if (!open) return '';
    this.#open.delete(candidate);
    const cut = cutCallIn(open, reason);
    return open.map((one) => (one === cut ? '' : this.#chunk(candidate, callPart(one)))).join('');
  }
}

interface Call {
  readonly call: number;
  readonly id: string;
  readonly name: string;
  readonly extra?: Extra;
  json: string;
}
