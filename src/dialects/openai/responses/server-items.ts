import type { SearchPart, ServerStep } from '#core/conversation';
import type { PartEvent } from '#core/event';
import { isObject, textOf, type JsonObject } from '#core/json';
import { askedId, searchItem } from './encode-items.ts';
import type { OutputItems } from './output-items.ts';
import { stepItem } from './server-steps.ts';
import { dialect } from './wire.ts';

type CalledStep = Extract<ServerStep, { type: 'called' }>;

interface Placed {
  readonly id: string;
  readonly index: number;
}

interface ServerItemsDeps {
  readonly items: OutputItems;
  readonly id: string;
  /** Does the client get the sources of searches? */
  readonly sources: boolean;
  /** Closes the open message or thought, before which none of these items can stand. */
  readonly close: () => string;
}

/** The items of what is done at a server and not by the client: searches, tools of MCP servers, hosted tools of the provider, pictures. */
export class ServerItems {
  readonly #deps: ServerItemsDeps;
  readonly #items: OutputItems;
  readonly #searches = new Map<string, Placed>();
  readonly #hosted = new Map<string, number>(); // indexes of the items of hosted tools by their ids
  readonly #calls = new Map<string, Placed>();

  constructor(deps: ServerItemsDeps) {
    this.#deps = deps;
    this.#items = deps.items;
  }

  /** @returns the frames, as all methods do */
  take({ part, progress }: PartEvent): string {
    return progress ? this.#progress(part) : this.#part(part);
  }

  /** An image becomes an image generation item; items of providers of this wire are sent unchanged. */
  #part(part: PartEvent['part']): string {
    if (part.type === 'search') return this.#search(part);
    if (part.type === 'foreign' && part.step) return this.#step(part.step);
    if (part.type === 'foreign' && part.dialect !== dialect) return part.search ? this.#search({ type: 'search', ...part.search }, 'provider_search') : '';
    const item: JsonObject | undefined =
      part.type === 'foreign'
        ? part.value
        : part.kind === 'image' && part.base64 !== undefined
          ? { id: this.#items.nextId('image_generation_call'), type: 'image_generation_call', status: 'completed', result: part.base64 }
          : undefined;
    if (!item) return '';
    const known = this.#hosted.get(textOf(item['id']));
    if (known !== undefined) return this.#items.done(known, item);
    const frames = this.#deps.close();
    const index = this.#items.next;
    return frames + this.#items.add(item) + this.#items.done(index, item);
  }

  /** An event of a provider of this wire about the item of a hosted tool, with the place that the item has here. */
  #progress(part: PartEvent['part']): string {
    if (part.type === 'foreign' && part.step?.type === 'called') return this.#beginCall(part.step);
    if (part.type !== 'foreign' || part.dialect !== dialect) return '';
    const { type: name, item, item_id: id, sequence_number: _number, output_index: _place, ...members } = part.value;
    const type = textOf(name);
    if (type === 'response.output_item.added' && isObject(item)) {
      const frames = this.#deps.close();
      this.#hosted.set(textOf(item['id']), this.#items.next);
      return frames + this.#items.add(item);
    }
    const index = this.#hosted.get(textOf(id));
    if (index === undefined || !/^response\.[a-z0-9_.]{1,100}$/.test(type)) return '';
    const others = this.#items.json(members).slice(1, -1);
    return this.#items.emit(type, `"output_index":${index},"item_id":${this.#items.json(id)}${others === '' ? '' : `,${others}`}`);
  }

  /** The item of a step, where it has not begun before. */
  #step(step: ServerStep): string {
    if (step.type === 'called') return this.#endCall(step);
    const frames = this.#deps.close();
    const index = this.#items.next;
    const id = step.type === 'asked' ? askedId(this.#deps.id, index, step.digest) : this.#items.nextId('mcp_list_tools');
    const item = stepItem(id, step);
    const added = this.#items.add(item, step.type === 'listed' ? { ...item, tools: [] } : item);
    if (step.type === 'asked') return frames + added + this.#items.done(index, item);
    const state = (name: string) => this.#items.emit(`response.mcp_list_tools.${name}`, `"item_id":"${id}","output_index":${index}`);
    return frames + added + state('in_progress') + state(step.error === undefined ? 'completed' : 'failed') + this.#items.done(index, item);
  }

  #beginCall(step: CalledStep): string {
    const frames = this.#deps.close();
    const index = this.#items.next;
    const id = this.#items.nextId('mcp_call');
    const place = `"item_id":"${id}","output_index":${index}`;
    const item = stepItem(id, step, 'in_progress');
    this.#calls.set(step.id, { id, index });
    const json = this.#items.json(step.json);
    return (
      frames +
      this.#items.add(item, { ...item, arguments: '' }) +
      this.#items.emit('response.mcp_call.in_progress', place) +
      this.#items.emit('response.mcp_call_arguments.delta', `${place},"delta":${json}`) +
      this.#items.emit('response.mcp_call_arguments.done', `${place},"arguments":${json}`)
    );
  }

  #endCall(step: CalledStep): string {
    const begun = this.#calls.has(step.id) ? '' : this.#beginCall(step);
    const { id, index } = this.#calls.get(step.id)!;
    const state = step.isError ? 'failed' : 'completed';
    return begun + this.#items.emit(`response.mcp_call.${state}`, `"item_id":"${id}","output_index":${index}`) + this.#items.done(index, stepItem(id, step));
  }

  #search(part: SearchPart, kind: 'web_search_call' | 'provider_search' = 'web_search_call'): string {
    let frames = '';
    let open = this.#searches.get(part.id);
    const stateFrame = (state: string) => this.#items.emit(`response.web_search_call.${state}`, `"output_index":${open!.index},"item_id":"${open!.id}"`);
    if (!open) {
      frames = this.#deps.close();
      open = { id: this.#items.nextId(kind), index: this.#items.next };
      this.#searches.set(part.id, open);
      frames += this.#items.add(searchItem(open.id, part, 'in_progress')) + stateFrame('in_progress') + stateFrame('searching');
    }
    if (part.state === 'searching') return frames;
    return frames + stateFrame('completed') + this.#items.done(open.index, searchItem(open.id, part, part.state, this.#deps.sources));
  }
}
