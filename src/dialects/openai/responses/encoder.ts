import type { SearchPart, ServerStep } from '#core/conversation';
import type { GenerateEvent, PartEvent, ToolCallPiece, Usage } from '#core/event';
import { isObject, own, textOf, type Extra, type Json, type JsonObject } from '#core/json';
import type { OpenAIError } from '../faults.ts';
import { argumentsAt, askedId, callItem, itemId, messageItem, reasoningItem, searchItem, urlCitation, type CallItem } from './encode-items.ts';
import { encodeLogprobs } from '../logprobs.ts';
import { isRefusal, Message, Thinking } from './open-items.ts';
import type { Status } from './response.ts';
import { stepItem } from './server-steps.ts';
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
  readonly frame?: (type: string, members: string) => string;
}

type CalledStep = Extract<ServerStep, { type: 'called' }>;

/** The text of a frame. */
export const frameText = (type: string, members: string) => `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`;

/** No frame: for whole answers. */
export const noFrame = () => '';

/**
 * Events → frames, and the response object that they add up to. One message or thought is open at a time; calls stay open until the end, since their fragments
 * may be interleaved. The wire has one candidate: others than the first are dropped.
 */
export class Encoder {
  readonly #answering: ResponseBeingWritten;
  readonly #frame: (type: string, members: string) => string;
  /** JSON text for a frame. */
  readonly #json: (value: unknown) => string;
  readonly #output: JsonObject[] = [];
  readonly #calls = new Map<number, { readonly item: CallItem; readonly index: number; json: string }>();
  readonly #searches = new Map<string, { readonly id: string; readonly index: number }>();
  readonly #hosted = new Map<string, number>(); // indexes of the items of hosted tools by their ids
  readonly #serverCalls = new Map<string, { readonly id: string; readonly index: number }>();
  #number = 0;
  #open: Message | Thinking | undefined;
  #model: string | undefined;
  #finished: Extract<GenerateEvent, { type: 'finished' }> | undefined;
  #usage: Usage | undefined;
  #response: JsonObject;

  constructor(response: ResponseBeingWritten) {
    this.#answering = response;
    this.#frame = response.frame ?? frameText;
    this.#json = this.#frame === noFrame ? () => '' : JSON.stringify;
    this.#response = response.response;
  }

  /** The response object so far. */
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
        return event.progress ? this.#progress(event.part) : this.#part(event.part);
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
    const refused = this.#output.concat(this.#open?.kind === 'message' ? this.#open.items() : []).some(isRefusal);
    const why = reason === 'length' ? 'max_output_tokens' : reason === 'refused' && !refused ? 'content_filter' : undefined;
    const status: Status = why === undefined ? 'completed' : 'incomplete';
    let frames = this.#model === undefined ? this.#start(textOf(this.#response['model'])) : '';
    if (this.#output.length === 0 && !this.#open && status === 'completed') frames += this.#text({ text: '' }, true);
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
    return this.#emit(`response.${textOf(this.#response['status'])}`, this.#whole()) + 'data: [DONE]\n\n';
  }

  /** The last frames of a response that failed: `error`, then `response.failed`, and no `[DONE]`. */
  fail(error: OpenAIError['error']): string {
    const start = this.#model === undefined ? this.#start(textOf(this.#response['model'])) : '';
    const errorFrame = this.#emit('error', `"error":${this.#json(error)}`);
    this.#leaveItems();
    this.#conclude('failed', { error: { code: error.code, message: error.message } });
    return start + errorFrame + this.#emit('response.failed', this.#whole());
  }

  /** The last frame of a stream that ends before its response does. */
  cutShort(error: OpenAIError['error']): string {
    return this.#emit('error', `"error":${this.#json(error)}`);
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
    return this.#emit('response.created', whole) + this.#emit('response.in_progress', whole);
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
        frames += this.#emit(
          'response.output_text.delta',
          `${open.place},"content_index":${open.at},"delta":${this.#json(text)},"logprobs":${this.#json(tokens)}`,
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
        this.#emit(
          'response.output_text.annotation.added',
          `${open.place},"content_index":${open.at},"annotation_index":${at},"annotation":${this.#json(one)}`,
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
    return frames + this.#emit('response.refusal.delta', `${open.place},"content_index":${open.at},"delta":${this.#json(text)}`);
  }

  #thought(text: string, extra: Extra | undefined): string {
    let frames = '';
    let open = this.#open?.kind === 'reasoning' ? this.#open : undefined;
    if (text === '' && (!extra || (!open && encryptedOf(extra) === undefined))) return '';
    if (!open) {
      frames = this.#close('completed');
      open = new Thinking(this.#next('reasoning'), this.#output.length);
      this.#output.push({});
      this.#open = open;
      frames += this.#emit('response.output_item.added', `"output_index":${open.index},"item":${this.#json(reasoningItem(open.id, '', undefined))}`);
    }
    if (text !== '') {
      if (open.text === '')
        frames += this.#emit('response.reasoning_summary_part.added', `${open.place},"summary_index":0,"part":{"type":"summary_text","text":""}`);
      open.text += text;
      frames += this.#emit('response.reasoning_summary_text.delta', `${open.place},"summary_index":0,"delta":${this.#json(text)}`);
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
      const id = this.#next(custom ? 'custom_tool_call' : 'function_call');
      const item: CallItem = { id, callId: piece.id, name: piece.name ?? '', custom, others: own(piece.extra, dialect) };
      open = { item, index: this.#output.length, json: '' };
      this.#calls.set(piece.call, open);
      this.#output.push({});
      frames += this.#emit('response.output_item.added', `"output_index":${open.index},"item":${this.#json(callItem(item, 'in_progress', ''))}`);
    }
    open.json += piece.json;
    if (piece.json === '') return frames;
    const type = open.item.custom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta';
    return frames + this.#emit(type, `"item_id":"${open.item.id}","output_index":${open.index},"delta":${this.#json(piece.json)}`);
  }

  /** An image becomes an image generation item; items of providers of this wire are sent unchanged. */
  #part(part: Extract<GenerateEvent, { type: 'part' }>['part']): string {
    if (part.type === 'search') return this.#search(part);
    if (part.type === 'foreign' && part.step) return this.#step(part.step);
    if (part.type === 'foreign' && part.dialect !== dialect) return part.search ? this.#search({ type: 'search', ...part.search }) : '';
    const item: JsonObject | undefined =
      part.type === 'foreign'
        ? part.value
        : part.kind === 'image' && part.base64 !== undefined
          ? { id: this.#next('image_generation_call'), type: 'image_generation_call', status: 'completed', result: part.base64 }
          : undefined;
    if (!item) return '';
    const known = this.#hosted.get(textOf(item['id']));
    if (known !== undefined) return this.#done(known, item);
    const frames = this.#close('completed');
    const members = `"output_index":${this.#output.length},"item":${this.#json(item)}`;
    this.#output.push(item);
    return frames + this.#emit('response.output_item.added', members) + this.#emit('response.output_item.done', members);
  }

  /** An event of a provider of this wire about the item of a hosted tool, with the place that the item has here. */
  #progress(part: PartEvent['part']): string {
    if (part.type === 'foreign' && part.step?.type === 'called') return this.#beginCall(part.step);
    if (part.type !== 'foreign' || part.dialect !== dialect) return '';
    const { type: name, item, item_id: id, sequence_number: _number, output_index: _place, ...members } = part.value;
    const type = textOf(name);
    if (type === 'response.output_item.added' && isObject(item)) {
      const frames = this.#close('completed');
      const index = this.#output.length;
      this.#hosted.set(textOf(item['id']), index);
      this.#output.push(item);
      return frames + this.#emit(type, `"output_index":${index},"item":${this.#json(item)}`);
    }
    const index = this.#hosted.get(textOf(id));
    if (index === undefined || !/^response\.[a-z0-9_.]{1,100}$/.test(type)) return '';
    const others = this.#json(members).slice(1, -1);
    return this.#emit(type, `"output_index":${index},"item_id":${this.#json(id)}${others === '' ? '' : `,${others}`}`);
  }

  /** The item of a step, where it has not begun before. */
  #step(step: ServerStep): string {
    if (step.type === 'called') return this.#endCall(step);
    const frames = this.#close('completed');
    const index = this.#output.length;
    const id = step.type === 'asked' ? askedId(textOf(this.#response['id']), index, step.digest) : this.#next('mcp_list_tools');
    const item = stepItem(id, step);
    this.#output.push(item);
    const added = this.#emit(
      'response.output_item.added',
      `"output_index":${index},"item":${this.#json(step.type === 'listed' ? { ...item, tools: [] } : item)}`,
    );
    if (step.type === 'asked') return frames + added + this.#done(index, item);
    const state = (name: string) => this.#emit(`response.mcp_list_tools.${name}`, `"item_id":"${id}","output_index":${index}`);
    return frames + added + state('in_progress') + state(step.error === undefined ? 'completed' : 'failed') + this.#done(index, item);
  }

  #beginCall(step: CalledStep): string {
    const frames = this.#close('completed');
    const index = this.#output.length;
    const id = this.#next('mcp_call');
    const place = `"item_id":"${id}","output_index":${index}`;
    const item = stepItem(id, step, 'in_progress');
    this.#serverCalls.set(step.id, { id, index });
    this.#output.push(item);
    return (
      frames +
      this.#emit('response.output_item.added', `"output_index":${index},"item":${this.#json({ ...item, arguments: '' })}`) +
      this.#emit('response.mcp_call.in_progress', place) +
      this.#emit('response.mcp_call_arguments.delta', `${place},"delta":${this.#json(step.json)}`) +
      this.#emit('response.mcp_call_arguments.done', `${place},"arguments":${this.#json(step.json)}`)
    );
  }

  #endCall(step: CalledStep): string {
    const begun = this.#serverCalls.has(step.id) ? '' : this.#beginCall(step);
    const { id, index } = this.#serverCalls.get(step.id)!;
    const state = step.isError ? 'failed' : 'completed';
    return begun + this.#emit(`response.mcp_call.${state}`, `"item_id":"${id}","output_index":${index}`) + this.#done(index, stepItem(id, step));
  }

  #search(part: SearchPart): string {
    let frames = '';
    let open = this.#searches.get(part.id);
    const stateFrame = (state: string) => this.#emit(`response.web_search_call.${state}`, `"output_index":${open!.index},"item_id":"${open!.id}"`);
    if (!open) {
      frames = this.#close('completed');
      open = { id: this.#next('web_search_call'), index: this.#output.length };
      this.#searches.set(part.id, open);
      const item = searchItem(open.id, part, 'in_progress');
      this.#output.push(item);
      frames +=
        this.#emit('response.output_item.added', `"output_index":${open.index},"item":${JSON.stringify(item)}`) +
        stateFrame('in_progress') +
        stateFrame('searching');
    }
    if (part.state === 'searching') return frames;
    return frames + stateFrame('completed') + this.#done(open.index, searchItem(open.id, part, part.state, this.#answering.sources));
  }

  #openMessage(): [string, Message] {
    const frames = this.#close('completed');
    const open = new Message(this.#next('message'), this.#output.length);
    this.#output.push({});
    this.#open = open;
    return [
      frames + this.#emit('response.output_item.added', `"output_index":${open.index},"item":${this.#json(messageItem(open.id, 'in_progress', []))}`),
      open,
    ];
  }

  #startPart(open: Message, part: 'output_text' | 'refusal'): string {
    open.start(part);
    return this.#emit('response.content_part.added', `${open.place},"content_index":${open.at},"part":${this.#json(open.content())}`);
  }

  #endPart(open: Message): string {
    if (open.part === undefined) return '';
    const place = `${open.place},"content_index":${open.at}`;
    const text = this.#json(open.text);
    const done =
      open.part === 'refusal'
        ? this.#emit('response.refusal.done', `${place},"refusal":${text}`)
        : this.#emit('response.output_text.done', `${place},"text":${text},"logprobs":${this.#json(open.logprobs)}`);
    const part = open.end();
    return done + this.#emit('response.content_part.done', `${place},"part":${this.#json(part)}`);
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
        const text = this.#json(open.text);
        frames =
          this.#emit('response.reasoning_summary_text.done', `${open.place},"summary_index":0,"text":${text}`) +
          this.#emit('response.reasoning_summary_part.done', `${open.place},"summary_index":0,"part":{"type":"summary_text","text":${text}}`);
      }
    }
    return frames + this.#done(open.index, item);
  }

  /** Only the last item can be incomplete. */
  #endItems(status: Status): string {
    const last = status === 'incomplete' ? this.#output.length - 1 : -1;
    let frames = '';
    const statusOf = (index: number) => (index === last ? 'incomplete' : 'completed');
    if (this.#open) frames += this.#close(statusOf(this.#open.index));
    for (const { item, index, json: sent } of this.#calls.values()) {
      const json = argumentsAt(item, statusOf(index), sent);
      if (json !== sent) frames += this.#emit('response.function_call_arguments.delta', `"item_id":"${item.id}","output_index":${index},"delta":"{}"`);
      const [type, name] = item.custom ? ['response.custom_tool_call_input.done', 'input'] : ['response.function_call_arguments.done', 'arguments'];
      const called = item.custom ? '' : `,"name":${this.#json(item.name)}`;
      frames += this.#emit(type, `"item_id":"${item.id}","output_index":${index}${called},"${name}":${this.#json(json)}`);
      frames += this.#done(index, callItem(item, statusOf(index), json));
    }
    this.#calls.clear();
    return frames;
  }

  /** Closes the open items as incomplete, without frames. */
  #leaveItems(): void {
    const number = this.#number;
    this.#endItems('incomplete');
    this.#number = number;
  }

  #done(index: number, item: JsonObject): string {
    this.#output[index] = item;
    return this.#emit('response.output_item.done', `"output_index":${index},"item":${this.#json(item)}`);
  }

  #conclude(status: Status, members: JsonObject): void {
    const completed_at = status === 'completed' ? this.#answering.now() : null;
    const usage = this.#usage ? encodeUsage(this.#usage) : null;
    const tier = own(this.#finished?.extra, dialect)['service_tier'];
    const served = tier === undefined ? {} : { service_tier: tier };
    this.#response = { ...this.#response, status, completed_at, output: this.#output, usage, ...served, ...members };
  }

  #next(kind: Parameters<typeof itemId>[1]): string {
    return itemId(textOf(this.#response['id']), kind, this.#output.length);
  }

  #whole(): string {
    return `"response":${this.#json(this.#response)}`;
  }

  #emit(type: string, members: string): string {
    return this.#frame(type, `"sequence_number":${this.#number++},${members}`);
  }
}
