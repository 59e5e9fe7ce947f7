import { withoutPassthrough } from '#core/passthrough';
import { QueueFull } from '#kit/async/fair-semaphore';
import { NotFetched, type GuardedFetch } from '#kit/net/guarded-fetch';
import { imageTypeOf } from '#kit/documents/image-type';
import type { GenerateCall } from '#core/call';
import type { ForeignPart, MediaPart, Part, Turn } from '#core/conversation';
import { Fault, queueFull } from '#core/fault';
import type { Events } from '#core/event';
import { gathered } from '#core/generate';
import type { TargetContext } from '#core/context';
import type { Target, TargetGroup } from '#core/target';
import { upstreamFault } from './post.ts';

/** The media of one call. */
const mostAddresses = 64;
const mostBytesEach = 20_971_520;
const mostBytes = 41_943_040;

/** The fetched media of a call, shared by the targets that are tried for it. */
const known = new WeakMap<GenerateCall, Map<string, Promise<Inline>>>();

type Inline = Pick<MediaPart, 'base64' | 'mediaType'>;

export interface Inlining {
  /** Whether the provider needs the content of this part. */
  readonly needed: (part: MediaPart) => boolean;
  /** Whether this part, of a user or of the result of a tool, has an address that the provider must not be sent. */
  readonly isRefused: (part: ForeignPart) => boolean;
}

/** Fetches media whose URLs a provider does not accept, and sends it the content. */
export function inliningMedia(fetcher: GuardedFetch, group: TargetGroup, inlining: Inlining): TargetGroup {
  const wrapped = (target: Target): Target => {
    const generate: Target['generate'] = (call, context) => {
      const parts = mediaOf(call.turns, inlining);
      return parts.length === 0 ? target.generate(call, context) : fetchedFirst(fetcher, target, call, context, parts);
    };
    const { answer } = target;
    return {
      ...target,
      get lesson() {
        return target.lesson;
      },
      get supports() {
        return target.supports; // changes as quirks are learned
      },
      generate,
      ...(answer
        ? { answer: (call, context) => (mediaOf(call.turns, inlining).length === 0 ? answer(call, context) : gathered(generate(call, context))) }
        : {}),
    };
  };
  return { ...group, target: wrapped(group.target), ...(group.others ? { others: group.others.map(wrapped) } : {}) };
}

/** Whether a part has a URL that can be fetched. */
export const isByAddress = ({ url = '' }: MediaPart): boolean => /^https?:/i.test(url);

/** Media, and its place in the conversation: that of the result if a tool gave it. */
interface Found {
  readonly part: MediaPart;
  readonly field: string;
}

/** Where a part stands: for one in the result of a tool, where the result stands. */
interface PartPlace {
  readonly isModels: boolean;
  readonly turn: number;
  readonly place: number;
}

const none: readonly Found[] = [];

/** The needed media of turns and of their tool results: nearly always none, and then no list is made. @throws Fault `invalid` for a part that is refused */
function mediaOf(turns: readonly Turn[], { needed, isRefused }: Inlining): readonly Found[] {
  let found: Found[] | undefined;
  const look = (part: Part, { isModels, turn, place }: PartPlace) => {
    if (part.type === 'media' && needed(part)) (found ??= []).push({ part, field: `turns[${turn}].parts[${place}]` });
    else if (part.type === 'foreign' && !isModels && isRefused(part))
      throw addressRefused(part, turns[turn]!.parts.length > 1 ? `turns[${turn}].parts[${place}]` : `turns[${turn}]`); // an item may have no content
  };
  for (let turn = 0; turn < turns.length; turn++) {
    const { role, parts } = turns[turn]!;
    for (let place = 0; place < parts.length; place++) {
      const part = parts[place]!;
      if (part.type === 'tool-result') for (const inner of part.parts) look(inner, { isModels: false, turn, place });
      else look(part, { isModels: role === 'model', turn, place });
    }
  }
  return found ?? none;
}

function addressRefused({ value: { type } }: ForeignPart, field: string): Fault {
  const what = typeof type === 'string' ? type.slice(0, 100) : 'such a part';
  return new Fault('invalid', `${field}: ${what} must have its content as a data URL, because this provider is not sent addresses.`, {
    field,
    elsewhere: true, // another target may be passed addresses
  });
}

async function* fetchedFirst(fetcher: GuardedFetch, target: Target, call: GenerateCall, context: TargetContext, all: readonly Found[]): AsyncGenerator<Events> {
  const inline = new Map<MediaPart, MediaPart>();
  if (new Set(all.map(({ part }) => part.url)).size > mostAddresses)
    throw new Fault('invalid', `A request must not contain more than ${mostAddresses} media URLs that have to be fetched for the provider.`, {
      field: 'turns',
    });
  const before = known.get(call);
  const fetched = before ?? new Map<string, Promise<Inline>>();
  if (!before) known.set(call, fetched);
  let bytes = 0;
  for (const one of all) {
    const { part, field } = one;
    const { url = '', ...bare } = part;
    const key = `${part.kind} ${url}`;
    let content = fetched.get(key);
    if (!content) fetched.set(key, (content = fetchedMedia(fetcher, one, context)));
    const { base64 = '', mediaType } = await content;
    bytes += base64.length * 0.75;
    if (bytes > mostBytes) throw new Fault('too-large', `${field}: the media that has to be fetched for the provider is too large.`, { field });
    inline.set(part, { ...bare, base64, ...(mediaType === undefined ? {} : { mediaType }) });
  }
  const replaced = <Any extends Part>(part: Any): Any | MediaPart => (part.type === 'media' ? (inline.get(part) ?? part) : part);
  const turns = call.turns.map((turn): Turn => ({
    ...turn,
    parts: turn.parts.map((part) => (part.type === 'tool-result' ? { ...part, parts: part.parts.map(replaced) } : replaced(part))),
  }));
  const decoded = withoutPassthrough(call); // the client's own bytes contain the URL
  yield* target.generate({ ...decoded, turns }, context);
}

/** @throws Fault `invalid`, with the same message whatever the URL leads to */
async function fetchedMedia(fetcher: GuardedFetch, { part, field }: Found, context: TargetContext): Promise<Inline> {
  const { kind, url = '' } = part;
  const { signal, caller, memory } = context;
  try {
    const takes = (type: string) => type === '' || type === 'application/octet-stream' || isOfKind(kind, type);
    const { bytes, type } = await fetcher.fetch({ url, owner: String(caller.userId), signal, maxBytes: mostBytesEach, memory, takes });
    const mediaType = kind === 'image' ? (imageTypeOf(bytes) ?? typeOfBrand(bytes)) : isOfKind(kind, type) ? type : part.mediaType;
    if (mediaType === undefined || bytes.length === 0) throw new NotFetched(new Error('The content has another media type.'));
    return { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'), mediaType };
  } catch (error) {
    if (error instanceof QueueFull) throw queueFull(error);
    if (!(error instanceof NotFetched)) throw upstreamFault(error);
    throw new Fault('invalid', `${field}: the ${kind} at ${url.slice(0, 200)} cannot be fetched, or has another media type. Send its content as base64.`, {
      cause: error,
      field,
    });
  }
}

function isOfKind(kind: MediaPart['kind'], type: string): boolean {
  if (kind === 'file') return /^(?:application\/(?:pdf|json|xml|rtf|msword|vnd\.[\w.+-]+)|text\/[\w.+-]+)$/.test(type);
  return type.startsWith(`${kind}/`) && /^[\w.+/-]{1,100}$/.test(type);
}

/** AVIF and HEIC, which some models take too. The type of an image is taken from its first bytes, not from the server's content type. */
function typeOfBrand(bytes: Uint8Array): string | undefined {
  const brand = /^[^]{4}ftyp([^]{4})/.exec(Buffer.from(bytes.subarray(0, 12)).toString('latin1'))?.[1];
  if (brand === 'avif') return 'image/avif';
  return brand !== undefined && /^(?:hei[cx]|mif1)$/.test(brand) ? 'image/heic' : undefined;
}
