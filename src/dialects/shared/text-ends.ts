import type { GenerateEvent } from '#core/event';

/** Characters of a streamed answer that are kept for the citations that may follow: any provider may search without being asked. Citations of later text are lost. */
export const mostQuotable = 500_000;

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
