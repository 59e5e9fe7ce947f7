import type { GenerateEvent } from '#model/event';

/**
 * The signatures that came with function calls, by the ids of the calls: models that think refuse a call that comes back without its own, and clients of
 * other interfaces have no place to keep it. As many as fit are kept, the newest.
 */
export interface Signatures {
  note(event: GenerateEvent): void;
  of(id: string): string | undefined;
}

/** Characters. */
const room = 8_000_000;

export function openSignatures(dialect: string): Signatures {
  const kept = new Map<string, string>();
  let size = 0;
  return {
    note(event) {
      if (event.type !== 'tool-call') return;
      const signature = event.extra?.[dialect]?.['thoughtSignature'];
      if (typeof signature !== 'string' || signature.length > room / 8) return;
      size += signature.length - (kept.get(event.id)?.length ?? 0);
      kept.set(event.id, signature);
      for (const [id, old] of kept) {
        if (size <= room) break;
        kept.delete(id);
        size -= old.length;
      }
    },
    of: (id) => kept.get(id),
  };
}
