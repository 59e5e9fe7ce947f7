import type { gemini } from '#dialects/gemini/index';
import type { Events } from '#core/event';

/**
 * The signatures that came with function calls, by the ids of the calls: models that think refuse a call that comes back without its own, and clients of
 * other interfaces have no place to keep it. As many as fit are kept, the newest.
 */
export interface Signatures {
  note(events: Events): void;
  of(id: string): string | undefined;
}

/** Bytes that ids and signatures may take, two a character, and what an entry takes besides. */
const room = 16_777_216;
const entryBytes = 200;
const sizeOf = (id: string, signature: string) => 2 * (id.length + signature.length) + entryBytes;

export function openSignatures(dialect: string): Signatures {
  const kept = new Map<string, string>();
  let size = 0;
  const keep = (id: string, signature: string) => {
    const before = kept.get(id);
    size += sizeOf(id, signature) - (before === undefined ? 0 : sizeOf(id, before));
    kept.set(id, signature);
    if (size <= room) return;
    // A tenth at a time: a map walks over what was deleted from its front each time that it is walked.
    for (const [other, old] of kept) {
      if (size <= room * 0.9) break;
      kept.delete(other);
      size -= sizeOf(other, old);
    }
  };
  return {
    note(events) {
      for (const event of events) {
        const signature = event.type === 'tool-call' ? event.extra?.[dialect]?.['thoughtSignature'] : undefined;
        if (event.type === 'tool-call' && typeof signature === 'string' && sizeOf(event.id, signature) <= room / 8) keep(event.id, signature);
      }
    },
    of: (id) => kept.get(id),
  };
}

/** A dialect that gives each function call back with the signature that came with it. */
export function withSignatures(dialect: typeof gemini, signatures: Signatures): typeof gemini {
  const noted = (events: Events): Events => {
    signatures.note(events);
    return events;
  };
  const options = { signatureOf: signatures.of };
  return {
    ...dialect,
    encodeRequest: (call, model, quirks) => dialect.encodeRequest(call, model, quirks, options),
    decoder(model, ignored, call) {
      const frames = dialect.decoder(model, ignored, call);
      return { ...frames, decode: (line) => noted(frames.decode(line)), end: () => noted(frames.end()) };
    },
    decodeResult: (body, model, ignored) => noted(dialect.decodeResult(body, model, ignored)),
  };
}
