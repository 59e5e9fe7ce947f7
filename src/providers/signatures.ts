import type { Said } from '#model/generate';

/**
 * The signatures that came with function calls, by the ids of the calls: models that think refuse a call that comes back without its own, and clients of
 * other interfaces have no place to keep it. As many as fit are kept, the newest.
 */
export interface Signatures {
  note(said: Said): void;
  of(id: string): string | undefined;
}

/** Characters. */
const room = 8_000_000;

export function openSignatures(dialect: string): Signatures {
  const kept = new Map<string, string>();
  let size = 0;
  const keep = (id: string, signature: string) => {
    size += signature.length - (kept.get(id)?.length ?? 0);
    kept.set(id, signature);
    for (const [other, old] of kept) {
      if (size <= room) break;
      kept.delete(other);
      size -= old.length;
    }
  };
  return {
    note(said) {
      for (const event of said) {
        const signature = event.type === 'tool-call' ? event.extra?.[dialect]?.['thoughtSignature'] : undefined;
        if (event.type === 'tool-call' && typeof signature === 'string' && signature.length <= room / 8) keep(event.id, signature);
      }
    },
    of: (id) => kept.get(id),
  };
}
