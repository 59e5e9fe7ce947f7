import { isWholeObject } from '#kit/json/foreign';
import type { MediaPart } from '#core/conversation';
import { isCut, type GenerateEvent, type ToolCallPiece, type Usage } from '#core/event';
import { mediaText } from '#core/shown-media';
import { isEmpty, isObject, own, textOf, type Json, type JsonObject } from '#core/json';
import type { Encoder } from '../dialect.ts';
import { mostQuotable } from '../shared/text-ends.ts';
import { citationsOf, headOf, isCounted, isSearch, searchBlocks, stopOf, thoughtMembers, type ShownSearch } from './encode-answer.ts';
import { encodeUsage } from './usage.ts';
import { dialect } from './wire.ts';

/** What an answer is encoded with in addition to its events. */
export interface MessageAnswer {
  /** The message's id, unless its upstream spoke this wire and sent one itself. */
  readonly id: string;
}

const messageStop = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';

/**
 * Events → frames, in content blocks of which one is open at a time; the last frames are the stop reason with the usage, and `message_stop`. The wire has one
 * candidate: others than the first are dropped. https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export const encoder = ({ id }: MessageAnswer): Encoder => new Blocks(id);

type Kind = 'text' | 'thinking' | 'tool_use';

/** An event that goes into a block. */
type ContentEvent = Extract<GenerateEvent, { type: 'text' | 'thought' | 'refusal' | 'tool-call' | 'part' }>;

class Blocks implements Encoder {
  readonly #id: string;
  #index = -1;
  #open: Kind | undefined;
  #call = -1; // the tool call of the open block
  #json = ''; // its arguments so far
  #isObject: boolean | undefined; // do they begin as an object? Undefined until they begin
  #text = ''; // text of the open block, kept for citations, which quote it
  #waiting: ContentEvent[] = []; // events that arrived before the open call was complete
  #finished: Extract<GenerateEvent, { type: 'finished' }> | undefined;
  #usage: Usage | undefined;
  #searches = 0; // shown so far

  constructor(id: string) {
    this.#id = id;
  }

  encode(event: GenerateEvent): string {
    if ('candidate' in event && event.candidate !== 0) return '';
    switch (event.type) {
      case 'started': {
        const { head, others } = headOf(event, this.#id);
        const message = { ...head, content: [], stop_reason: null, stop_sequence: null, usage: encodeUsage(event.usage ?? uncounted), ...others };
        return frame('message_start', { message });
      }
      case 'text':
      case 'thought':
      case 'refusal':
      case 'tool-call':
      case 'part':
        return this.#inTurn(event);
      case 'finished':
        this.#finished ??= event;
        return '';
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
    const { reason, raw, extra } = this.#finished ?? { reason: 'stop', raw: '', extra: undefined };
    const { stop, others } = stopOf(reason, raw, extra);
    let frames = this.#close();
    while (this.#waiting.length > 0) frames += this.#emitWaiting() + this.#close();
    const usage = this.#usage ? encodeUsage(this.#usage, this.#searches) : { output_tokens: 0 };
    return frames + frame('message_delta', { delta: stop, usage, ...others }) + messageStop;
  }

  /** Events beside an incomplete tool call wait until it is complete, so that no fragment of the call is lost. */
  #inTurn(event: ContentEvent): string {
    if (this.#open !== 'tool_use') return this.#emit(event);
    if (event.type === 'tool-call' && event.call === this.#call) {
      const frames = this.#piece(event);
      return this.#waiting.length > 0 && this.#isComplete() ? frames + this.#emitWaiting() : frames;
    }
    if (this.#waiting.length === 0 && this.#isComplete()) return this.#emit(event);
    this.#waiting.push(event);
    return '';
  }

  /** Emits the waiting events, with all fragments of a call where its first one was. */
  #emitWaiting(): string {
    const groups = Map.groupBy(this.#waiting, (event) => (event.type === 'tool-call' ? event.call : event));
    this.#waiting = [];
    let frames = '';
    for (const events of groups.values()) for (const event of events) frames += this.#inTurn(event);
    return frames;
  }

  #isComplete(): boolean {
    return isWholeObject(this.#json);
  }

  #emit(event: ContentEvent): string {
    switch (event.type) {
      case 'text':
        if (this.#text.length <= mostQuotable) this.#text += event.text;
        return this.#emitText('text', event.text, textMembers(event, this.#text), event.extra !== undefined || event.citations !== undefined);
      case 'thought':
        return this.#emitText('thinking', event.text, thoughtMembers(event.extra), event.extra !== undefined);
      case 'refusal':
        return this.#emitText('text', event.text, {}, false);
      case 'tool-call':
        return this.#piece(event);
      case 'part':
        if (isSearch(event.part)) return this.#search(event.part);
        if (event.part.type === 'media') return this.#media(event.part);
        if (event.part.dialect !== dialect) return '';
        return this.#whole(event.part.value);
      default:
        return event satisfies never;
    }
  }

  /** A note of an image is a block of its own; the words of a sound go on in the open text. */
  #media(part: MediaPart): string {
    const isImage = part.kind === 'image';
    return (isImage ? this.#close() : '') + this.#emitText('text', mediaText(part), {}, isImage);
  }

  #search(part: ShownSearch): string {
    if (isCounted(part)) this.#searches++;
    return searchBlocks(part)
      .map((block) => this.#whole(block))
      .join('');
  }

  /** A block that came as one. The input of a call of the provider's is a delta, as that of a client's tool: clients take it from there. */
  #whole(block: JsonObject): string {
    const { input } = block;
    if (!textOf(block['type']).endsWith('_tool_use') || !isObject(input)) return this.#close() + this.#start(block) + this.#stop();
    const start = this.#close() + this.#start({ ...block, input: {} });
    return start + (isEmpty(input) ? '' : this.#delta('input_json_delta', 'partial_json', JSON.stringify(input))) + this.#stop();
  }

  #emitText(kind: 'text' | 'thinking', text: string, carried: JsonObject, last: boolean): string {
    if (text === '' && last && Object.keys(carried).length === 0) return this.#open === kind ? this.#close() : '';
    if (text === '' && !last) return '';
    let frames = this.#open === kind ? '' : this.#close() + this.#start(kind === 'text' ? emptyText : emptyThinking, kind);
    if (text !== '') frames += this.#delta(kind === 'text' ? 'text_delta' : 'thinking_delta', kind, text);
    const { citations, signature } = carried;
    if (Array.isArray(citations)) for (const one of citations as readonly Json[]) frames += this.#delta('citations_delta', 'citation', one);
    if (signature !== undefined) frames += this.#delta('signature_delta', 'signature', signature);
    return last ? frames + this.#close() : frames;
  }

  #piece(piece: ToolCallPiece): string {
    const { call, id, name, json, extra } = piece;
    let frames = '';
    if (this.#open !== 'tool_use' || call !== this.#call) {
      if (name === undefined) return ''; // its block was closed by other content
      if (this.#open !== undefined) frames = this.#stop();
      frames += this.#start({ ...own(extra, dialect), type: 'tool_use', id, name, input: {} }, 'tool_use');
      this.#call = call;
      this.#json = '';
      this.#isObject = undefined;
    }
    this.#json += json;
    if (this.#isObject) return json === '' ? frames : frames + this.#delta('input_json_delta', 'partial_json', json);
    const [first] = this.#isObject === undefined ? json.trimStart() : '';
    if (first === undefined) return frames;
    this.#isObject = first === '{';
    return this.#isObject ? frames + this.#delta('input_json_delta', 'partial_json', this.#json) : frames;
  }

  /** Arguments that are no object are wrapped in one as text, as those of a whole answer: clients return the input of a call, which must be one. Those that broke off, at the end of an answer, are not. */
  #wrapped(): string {
    const isEnd = isCut(this.#finished?.reason) && this.#waiting.length === 0;
    const isWrapped = this.#open === 'tool_use' && this.#isObject === false && this.#json !== 'null' && !isEnd;
    return isWrapped ? this.#delta('input_json_delta', 'partial_json', JSON.stringify({ arguments: this.#json })) : '';
  }

  #start(block: JsonObject, kind?: Kind): string {
    this.#index++;
    this.#open = kind;
    return frame('content_block_start', { index: this.#index, content_block: block });
  }

  #delta(type: string, name: string, value: Json): string {
    return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":{"type":"${type}","${name}":${JSON.stringify(value)}}}\n\n`;
  }

  #close(): string {
    return this.#open === undefined ? '' : this.#stop();
  }

  #stop(): string {
    const wrapped = this.#wrapped();
    this.#open = undefined;
    this.#text = '';
    return wrapped + frame('content_block_stop', { index: this.#index });
  }
}

/** The carried members of a text, with its citations: as the provider sent them where it did. */
function textMembers({ extra, citations }: Extract<GenerateEvent, { type: 'text' }>, text: string): JsonObject {
  const carried = own(extra, dialect);
  return citations && carried['citations'] === undefined ? { ...carried, citations: citationsOf(citations, text) } : carried;
}

const uncounted: Usage = { input: 0, output: 0, source: 'estimated' };

const emptyText = { type: 'text', text: '' };
const emptyThinking = { type: 'thinking', thinking: '', signature: '' };

const frame = (type: string, members: JsonObject) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
