import { textOf, type JsonObject } from '#core/json';
import { itemId } from './encode-items.ts';

/** The text of a frame. @param number the sequence number, which the members have too */
export type Frame = (type: string, members: string, number: number) => string;

export const frameText = (type: string, members: string): string => `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`;

/** No frame: for whole answers. */
export const noFrame: Frame = () => '';

/** The output items of one response, and the frames about them, which are numbered. */
export class OutputItems {
  readonly list: JsonObject[] = [];
  /** JSON text for a frame. */
  readonly json: (value: unknown) => string;
  readonly #responseId: string;
  readonly #frame: Frame;
  #number = 0;

  constructor(response: JsonObject, frame: Frame) {
    this.#responseId = textOf(response['id']);
    this.#frame = frame;
    this.json = frame === noFrame ? () => '' : JSON.stringify;
  }

  get next(): number {
    return this.list.length;
  }

  nextId(kind: Parameters<typeof itemId>[1]): string {
    return itemId(this.#responseId, kind, this.next);
  }

  /** Adds an item. @param shown as its frame has it */
  add(item: JsonObject, shown = item): string {
    const index = this.list.push(item) - 1;
    return this.emit('response.output_item.added', `"output_index":${index},"item":${this.json(shown)}`);
  }

  done(index: number, item: JsonObject): string {
    this.list[index] = item;
    return this.emit('response.output_item.done', `"output_index":${index},"item":${this.json(item)}`);
  }

  emit(type: string, members: string): string {
    const number = this.#number++;
    return this.#frame(type, `"sequence_number":${number},${members}`, number);
  }

  /** The frames from here on have this number or a higher one. */
  numberFrom(least: number): void {
    this.#number = Math.max(this.#number, least);
  }

  /** Does something whose frames are not sent. */
  unsent(change: () => unknown): void {
    const number = this.#number;
    change();
    this.#number = number;
  }
}
