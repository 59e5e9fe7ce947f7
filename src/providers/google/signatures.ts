import type { gemini } from '#dialects/gemini/index';
import type { Events } from '#core/event';

/**
 * The signatures of function calls, by call ID. Thinking models reject a call that comes back without its signature, and clients of other interfaces have no
 * field for it. The newest signatures are stored, as many as fit.
 */
export interface Signatures {
  note(events: Events): void;
  of(id: string): string | undefined;
}

/** Maximum bytes of IDs and signatures, at two per character, and the overhead per entry. */
const room = 16_777_216;
const entryBytes = 200;
const sizeOf = (id: string, signature: string) => 2 * (id.length + signature.length) + entryBytes;

export function openSignatures(dialect: string): Signatures {
  const stored = new Map<string, string>();
  let size = 0;
  const keep = (id: string, signature: string) => {
    const before = stored.get(id);
    size += sizeOf(id, signature) - (before === undefined ? 0 : sizeOf(id, before));
    stored.set(id, signature);
    if (size <= room) return;
    // Evicts a tenth at a time, since iterating over a Map passes over the deleted entries at its front each time.
    for (const [other, old] of stored) {
      if (size <= room * 0.9) break;
      stored.delete(other);
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
    of: (id) => stored.get(id),
  };
}

/** A dialect that sends each function call back with its signature. */
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
