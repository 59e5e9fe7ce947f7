import type { GenerateEvent, ToolCallPiece, Usage } from '#core/event';
import { mediaText } from '#core/shown-media';
import { own, textOf, type Extra, type Json, type JsonObject } from '#core/json';
import type { OpenAIError } from '../faults.ts';
import { argumentsAt, callItem, messageItem, reasoningItem, urlCitation, type CallItem } from './encode-items.ts';
import { responseErrorCode } from './faults.ts';
import { encodeLogprobs } from '../logprobs.ts';
import { isRefusal, Message, Thinking } from './open-items.ts';
import { frameText, OutputItems, type Frame } from './output-items.ts';
import type { Status } from './response.ts';
import { ServerItems } from './server-items.ts';
import { encryptedOf } from './thoughts.ts';
import { encodeUsage } from './usage.ts';
import { dialect } from './wire.ts';

/** What an answer is encoded with in addition to its events. */
export interface ResponseBeingWritten {
  /** The response object before any event: see `queued`. */
  readonly response: JsonObject;
  /** Does the client get `encrypted_content`, which other wires need to have their thoughts sent back? */
  readonly encrypted: boolean;
  /** Does the client get the sources of searches? */
  readonly sources: boolean;
  /** Unix seconds, at the end. */
  readonly now: () => number;
  /** Writes a frame; `frameText` where absent. */
  readonly frame?: Frame;
}

/**
 * Events → frames, and the response object that they add up to. One message or thought is open at a time; calls stay open until the end, since their fragments
 * may be interleaved. The wire has one candidate: others than the first are dropped.
 */
export class Encoder {
  readonly #answering: ResponseBeingWritten;
  readonly #items: OutputItems;
  readonly #server: ServerItems;
  readonly #calls = new Map<number, { readonly item: CallItem; readonly index: number; json: string }>();
  #open: Message | Thinking | undefined;
  #model: string | undefined;
  #finished: Extract<GenerateEvent, { type: 'finished' }> | undefined;
  #usage: Usage | undefined;
  #response: JsonObject;

  constructor(response: ResponseBeingWritten) {
    this.#answering = response;
    this.#response = response.response;
    this.#items = new OutputItems(this.#response, response.frame ?? frameText);
    const id = textOf(this.#response['id']);
    this.#server = new ServerItems({ items: this.#items, id, sources: response.sources, close: () => this.#close('completed') });
  }

  get response(): JsonObject {
    return this.#response;
  }

  /** @returns the text of the frames to send, each with its blank line; '' for none */
  encode(event: GenerateEvent): string {
    if ('candidate' in event && event.candidate !== 0) return '';
    switch (event.type) {
      case 'started':
        return this.#start(event.model);
      case 'text':
        return this.#text(event);
      case 'refusal':
        return this.#refusal(event.text);
      case 'thought':
        return this.#thought(event.text, event.extra);
      case 'tool-call':
        return this.#callPiece(event);
      case 'part':
        return event.part.type === 'media' && event.part.kind === 'audio' ? this.#text({ text: mediaText(event.part) }) : this.#server.take(event);
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

  /** Closes all open items: from here on `response` is complete. */
  finish(): string {
    const reason = this.#finished?.reason ?? 'stop';
    const refused = this.#items.list.concat(this.#open?.kind === 'message' ? this.#open.items() : []).some(isRefusal);
    const why = reason === 'length' ? 'max_output_tokens' : reason === 'refused' && !refused ? 'content_filter' : undefined;
    const status: Status = why === undefined ? 'completed' : 'incomplete';
    let frames = this.#model === undefined ? this.#start(textOf(this.#response['model'])) : '';
    if (this.#items.next === 0 && !this.#open && status === 'completed') frames += this.#text({ text: '' }, true);
    frames += this.#endItems(status);
    this.#conclude(status, { incomplete_details: why === undefined ? null : { reason: why } });
    return frames;
  }

  /** The last frames of a response, unless it could not be stored as its request wanted. */
  end(): string {
    return this.finish() + this.last(true);
  }

  /** The frame with the final response, then `[DONE]`. @param stored was it stored, where its request wanted that? */
  last(stored: boolean): string {
    if (!stored) this.#response = { ...this.#response, store: false };
    return this.#items.emit(`response.${textOf(this.#response['status'])}`, this.#whole()) + 'data: [DONE]\n\n';
  }

  /** The last frames of a response that failed: `error`, then `response.failed`, and no `[DONE]`. */
  fail(error: OpenAIError['error']): string {
    const start = this.#model === undefined ? this.#start(textOf(this.#response['model'])) : '';
    const errorFrame = this.#items.emit('error', `"error":${this.#items.json(error)}`);
    this.#leaveItems();
    this.#conclude('failed', { error: { code: responseErrorCode(error), message: error.message } });
    return start + errorFrame + this.#items.emit('response.failed', this.#whole());
  }

  /** The frames from here on have this number or a higher one. */
  numberFrom(least: number): void {
    this.#items.numberFrom(least);
  }

  /** The last frame of a stream that ends before its response does. */
  cutShort(error: OpenAIError['error']): string {
    return this.#items.emit('error', `"error":${this.#items.json(error)}`);
  }

  /** Ends the response of a cancelled run. */
  cancel(): void {
    this.#leaveItems();
    this.#conclude('cancelled', {});
  }

  #start(model: string): string {
    this.#model = model;
    this.#response = { ...this.#response, model, status: 'in_progress' };
    const whole = this.#whole();
    return this.#items.emit('response.created', whole) + this.#items.emit('response.in_progress', whole);
  }

  #text({ text, logprobs, citations, extra }: Omit<Extract<GenerateEvent, { type: 'text' }>, 'type' | 'candidate'>, empty = false): string {
    const { '.annotations': original, '.message': message } = own(extra, dialect);
    const annotations = original ?? citations?.map(urlCitation);
    let frames = '';
    let open = this.#open?.kind === 'message' ? this.#open : undefined;
    if (text !== '' || logprobs || annotations !== undefined || empty) {
      if (!open) [frames, open] = this.#openMessage();
      if (open.part !== 'output_text') frames += this.#endPart(open) + this.#startPart(open, 'output_text');
      const tokens = logprobs ? encodeLogprobs(logprobs, []) : [];
      open.logprobs.push(...tokens);
      open.text += text;
      if (text !== '' || logprobs)
        frames += this.#items.emit(
          'response.output_text.delta',
          `${open.place},"content_index":${open.at},"delta":${this.#items.json(text)},"logprobs":${this.#items.json(tokens)}`,
        );
      if (Array.isArray(annotations)) frames += this.#annotate(open, annotations);
    }
    if (!(extra || citations) || !open) return frames;
    frames += this.#endPart(open);
    if (message === undefined) return frames;
    open.others = message as JsonObject;
    return frames + this.#close('completed');
  }

  #annotate(open: Message, annotations: readonly Json[]): string {
    open.annotations = annotations;
    return annotations
      .map((one, at) =>
        this.#items.emit(
          'response.output_text.annotation.added',
          `${open.place},"content_index":${open.at},"annotation_index":${at},"annotation":${this.#items.json(one)}`,
        ),
      )
      .join('');
  }

  #refusal(text: string): string {
    if (text === '') return '';
    let frames = '';
    let open = this.#open?.kind === 'message' ? this.#open : undefined;
    if (!open) [frames, open] = this.#openMessage();
    if (open.part !== 'refusal') frames += this.#endPart(open) + this.#startPart(open, 'refusal');
    open.text += text;
    return frames + this.#items.emit('response.refusal.delta', `${open.place},"content_index":${open.at},"delta":${this.#items.json(text)}`);
  }

  #thought(text: string, extra: Extra | undefined): string {
    let frames = '';
    let open = this.#open?.kind === 'reasoning' ? this.#open : undefined;
    if (text === '' && (!extra || (!open && encryptedOf(extra) === undefined))) return '';
    if (!open) {
      frames = this.#close('completed');
      open = new Thinking(this.#items.nextId('reasoning'), this.#items.next);
      this.#open = open;
      frames += this.#items.add({}, reasoningItem(open.id, '', undefined));
    }
    if (text !== '') {
      if (open.text === '')
        frames += this.#items.emit('response.reasoning_summary_part.added', `${open.place},"summary_index":0,"part":{"type":"summary_text","text":""}`);
      open.text += text;
      frames += this.#items.emit('response.reasoning_summary_text.delta', `${open.place},"summary_index":0,"delta":${this.#items.json(text)}`);
    }
    if (!extra) return frames;
    open.encrypted = this.#answering.encrypted ? encryptedOf(extra) : undefined;
    return frames + this.#close('completed');
  }

  #callPiece(piece: ToolCallPiece): string {
    let frames = '';
    let open = this.#calls.get(piece.call);
    if (!open) {
      frames = this.#close('completed');
      const custom = piece.custom === true;
      const id = this.#items.nextId(custom ? 'custom_tool_call' : 'function_call');
      const item: CallItem = { id, callId: piece.id, name: piece.name ?? '', custom, others: own(piece.extra, dialect) };
      open = { item, index: this.#items.next, json: '' };
      this.#calls.set(piece.call, open);
      frames += this.#items.add({}, callItem(item, 'in_progress', ''));
    }
    open.json += piece.json;
    if (piece.json === '') return frames;
    const type = open.item.custom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta';
    return frames + this.#items.emit(type, `"item_id":"${open.item.id}","output_index":${open.index},"delta":${this.#items.json(piece.json)}`);
  }

  #openMessage(): [string, Message] {
    const frames = this.#close('completed');
    const open = new Message(this.#items.nextId('message'), this.#items.next);
    this.#open = open;
    return [frames + this.#items.add({}, messageItem(open.id, 'in_progress', [])), open];
  }

  #startPart(open: Message, part: 'output_text' | 'refusal'): string {
    open.start(part);
    return this.#items.emit('response.content_part.added', `${open.place},"content_index":${open.at},"part":${this.#items.json(open.content())}`);
  }

  #endPart(open: Message): string {
    if (open.part === undefined) return '';
    const place = `${open.place},"content_index":${open.at}`;
    const text = this.#items.json(open.text);
    const done =
      open.part === 'refusal'
        ? this.#items.emit('response.refusal.done', `${place},"refusal":${text}`)
        : this.#items.emit('response.output_text.done', `${place},"text":${text},"logprobs":${this.#items.json(open.logprobs)}`);
    const part = open.end();
    return done + this.#items.emit('response.content_part.done', `${place},"part":${this.#items.json(part)}`);
  }

  /** Closes the open message or thought. */
  #close(status: 'completed' | 'incomplete'): string {
    const open = this.#open;
    this.#open = undefined;
    if (!open) return '';
    let frames = '';
    let item: JsonObject;
    if (open.kind === 'message') {
      frames = this.#endPart(open);
      item = messageItem(open.id, status, open.done, open.others);
    } else {
      item = reasoningItem(open.id, open.text, open.encrypted);
      if (open.text !== '') {
        const text = this.#items.json(open.text);
        frames =
          this.#items.emit('response.reasoning_summary_text.done', `${open.place},"summary_index":0,"text":${text}`) +
          this.#items.emit('response.reasoning_summary_part.done', `${open.place},"summary_index":0,"part":{"type":"summary_text","text":${text}}`);
      }
    }
    return frames + this.#items.done(open.index, item);
  }

  /** Only the last item can be incomplete. */
  #endItems(status: Status): string {
    const last = status === 'incomplete' ? this.#items.next - 1 : -1;
    let frames = '';
    const statusOf = (index: number) => (index === last ? 'incomplete' : 'completed');
    if (this.#open) frames += this.#close(statusOf(this.#open.index));
    for (const { item, index, json: sent } of this.#calls.values()) {
      const json = argumentsAt(item, statusOf(index), sent);
      if (json !== sent) frames += this.#items.emit('response.function_call_arguments.delta', `"item_id":"${item.id}","output_index":${index},"delta":"{}"`);
      const [type, name] = item.custom ? ['response.custom_tool_call_input.done', 'input'] : ['response.function_call_arguments.done', 'arguments'];
      const called = item.custom ? '' : `,"name":${this.#items.json(item.name)}`;
      frames += this.#items.emit(type, `"item_id":"${item.id}","output_index":${index}${called},"${name}":${this.#items.json(json)}`);
      frames += this.#items.done(index, callItem(item, statusOf(index), json));
    }
    this.#calls.clear();
    return frames;
  }

  /** Closes the open items as incomplete, without frames. */
  #leaveItems(): void {
    this.#items.unsent(() => this.#endItems('incomplete'));
  }

  #conclude(status: Status, members: JsonObject): void {
    const completed_at = status === 'completed' ? this.#answering.now() : null;
    const usage = this.#usage ? encodeUsage(this.#usage) : null;
    const carried = own(this.#finished?.extra, dialect);
    this.#response = { ...this.#response, ...carried, status, completed_at, output: this.#items.list, usage, ...members };
  }

  #whole(): string {
    return `"response":${this.#items.json(this.#response)}`;
  }
}
