import { copied } from '#kit/text/copied';
import type { Events } from '#core/event';
import { own, type Extra } from '#core/json';

/**
 * Who signed what. A client of a provider's own dialect returns signatures as they came, and providers refuse those of others, so a conversation that moved between
 * providers of one dialect must not bring them along. Each process knows what it has seen; of what it has not seen the refusal tells (`isAboutSignature`).
 */
const signers = new Map<string, string>();

/** The newest signatures are known, a few hundred bytes each. */
const mostKnown = 20_000;
const shortest = 16;
const keyLength = 48;
const mostPadding = 2;

/** A client that decodes base64 may return a signature as base64url or without padding. Gemini accepts either, so the key is the same. */
function keyOf(signature: string, userId: number): string {
  const end = signature
    .slice(-keyLength - mostPadding)
    .replace(/={1,2}$/, '')
    .slice(-keyLength); // of the same characters, however it is padded
  return copied(`${userId} ${end.replaceAll('-', '+').replaceAll('_', '/')}`);
}

function* signaturesIn(extra: Extra | undefined, dialect: string): Generator<string> {
  const members = own(extra, dialect);
  for (const name in members) {
    const value = members[name];
    if (typeof value === 'string' && value.length >= shortest && !name.startsWith('.')) yield value;
  }
}

/** Who gave a signature to whom. */
export interface Signer {
  readonly dialect: string;
  readonly origin: string;
  /** One user's signatures are nobody else's. */
  readonly userId: number;
}

/** Notes the signatures of an answer. */
export async function* signed(answer: AsyncIterable<Events>, signer: Signer): AsyncGenerator<Events> {
  for await (const events of answer) {
    noteSigned(events, signer);
    yield events;
  }
}

/** The same for a whole answer. */
export function noteSigned(events: Events, { dialect, origin, userId }: Signer): void {
  for (const event of events) {
    if (event.type !== 'thought' && event.type !== 'tool-call') continue;
    for (const signature of signaturesIn(event.extra, dialect)) note(keyOf(signature, userId), origin);
  }
}

function note(key: string, origin: string): void {
  signers.delete(key);
  signers.set(key, origin);
  if (signers.size <= mostKnown) return;
  const [oldest] = signers.keys();
  signers.delete(oldest!);
}

/** Is a signature known to be another provider's? */
export function isForeign(extra: Extra | undefined, { dialect, origin, userId }: Signer): boolean {
  for (const signature of signaturesIn(extra, dialect)) {
    const signer = signers.get(keyOf(signature, userId));
    if (signer !== undefined && signer !== origin) return true;
  }
  return false;
}
