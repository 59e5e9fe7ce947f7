import type { Json, JsonObject } from '#core/json';
import { messageItem, outputText } from './encode-items.ts';

/** The open items of a response. */

export const isRefusal = (item: JsonObject): boolean =>
  Array.isArray(item['content']) && (item['content'] as readonly JsonObject[]).some((part) => part['type'] === 'refusal');

export class Message {
  readonly kind = 'message';
  readonly id: string;
  readonly index: number;
  /** JSON members that all of its frames have. */
  readonly place: string;
  readonly done: JsonObject[] = [];
  part: 'output_text' | 'refusal' | undefined;
  text = '';
  logprobs: JsonObject[] = [];
  annotations: readonly Json[] = [];
  others: JsonObject = {};

  constructor(id: string, index: number) {
    this.id = id;
    this.index = index;
    this.place = `"item_id":"${id}","output_index":${index}`;
  }

  /** Index of the open part. */
  get at(): number {
    return this.done.length;
  }

  start(part: 'output_text' | 'refusal'): void {
    this.part = part;
    this.text = '';
    this.logprobs = [];
    this.annotations = [];
  }

  content(): JsonObject {
    return this.part === 'refusal' ? { type: 'refusal', refusal: this.text } : outputText(this.text, this.annotations, this.logprobs);
  }

  end(): JsonObject {
    const part = this.content();
    this.done.push(part);
    this.part = undefined;
    return part;
  }

  items(): JsonObject[] {
    return [messageItem(this.id, '', this.part === undefined ? this.done : [...this.done, this.content()])];
  }
}

export class Thinking {
  readonly kind = 'reasoning';
  readonly id: string;
  readonly index: number;
  readonly place: string;
  text = '';
  encrypted: string | undefined;

  constructor(id: string, index: number) {
    this.id = id;
    this.index = index;
    this.place = `"item_id":"${id}","output_index":${index}`;
  }
}
