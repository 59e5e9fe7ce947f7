import { textOf, type JsonObject } from '#core/json';
import { itemId } from './encode-items.ts';

export type Frame = (type: string, members: string) => string;

export const frameText: Frame = (type, members) => `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`;

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
    return this.#frame(type, `"sequence_number":${this.#number++},${members}`);
  }

  /** Does something whose frames are not sent. */
  unsent(change: () => unknown): void {
    const number = this.#number;
    change();
    this.#number = number;
  }
}
