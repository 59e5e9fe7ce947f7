import type { GenerateEvent } from '#core/event';

/** Knows which events end the open part of a candidate's text, as the fold of an answer has it: the places of later citations count from there. */
export class TextEnds {
  readonly #searches = new Set<string>();

  /** @returns whether the event ends the open text; call once for each event */
  take(event: GenerateEvent): boolean {
    switch (event.type) {
      case 'thought':
      case 'refusal':
        return event.text !== '' || ('extra' in event && event.extra !== undefined);
      case 'tool-call':
        return event.name !== undefined;
      case 'part': {
        if (event.progress) return false;
        const { part } = event;
        if (part.type !== 'search') return true;
        const id = `${event.candidate} ${part.id}`;
        if (this.#searches.has(id)) return false; // it takes the place of the first
        this.#searches.add(id);
        return true;
      }
      case 'text':
      case 'started':
      case 'finished':
      case 'usage':
      case 'passed':
        return false;
      default:
        return event satisfies never;
    }
  }
}
