import type { Part, Turn } from '#core/conversation';
import { Fault } from '#core/fault';
import { isEmpty, own, type JsonObject } from '#core/json';
import { foreignName } from '../shared/foreign-name.ts';
import { dialect } from './wire.ts';

/** A part of a turn, and the members of it that are sent. */
export interface SentPart {
  readonly part: Part;
  readonly sent: readonly JsonObject[];
}

/** Stands where a message has no text: the wire refuses empty ones. */
export const nothing: JsonObject = { text: '.' };

interface Result {
  /** Where its call is among all calls. */
  readonly place: number;
  readonly sent: readonly JsonObject[];
  readonly media: readonly JsonObject[];
}

interface Draft {
  readonly role: 'model' | 'user';
  /** Holds function results and nothing else but their media. */
  readonly isResults: boolean;
  readonly results: Result[];
  readonly parts: JsonObject[];
  /** Media of the results, where they are not part of them. */
  readonly media: JsonObject[];
  readonly carried: JsonObject;
}

/** The content with a call, and where the call is among all calls. */
interface Called {
  readonly draft: Draft;
  readonly place: number;
}

export interface ContentsOptions {
  /** Function calls need a signature. */
  readonly signed: boolean;
  /** The client spoke another dialect: what the wire demands of the order of contents is up to us. */
  readonly isTranslated: boolean;
}

/**
 * The contents of a request, in the order that the wire requires. Neighbours of one role are one content; function results follow the content with their calls at
 * once, and other parts of their turn come after them: `Please ensure that function call turn comes immediately after a user turn or after a function response turn.`
 * The results are in the order of their calls: without ids (on Vertex AI) it tells which result of a function is whose.
 * Contents of a client of this wire stay as they came, but for results that follow each other.
 */
export class Contents {
  readonly #drafts: Draft[] = [];
  readonly #called = new Map<string, Called>(); // by the id of the call
  #calls = 0;
  readonly #options: ContentsOptions;

  constructor(options: ContentsOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#drafts.length === 0;
  }

  /** @throws Fault `invalid` where nothing of a message of the user can be sent */
  turn(turn: Turn, parts: readonly SentPart[]): void {
    const carried = own(turn.extra, dialect);
    const all = parts.flatMap(({ sent }) => sent);
    if (!this.#options.isTranslated) {
      if (all.length > 0 || turn.role === 'user') this.#asItCame(turn.role === 'model' ? 'model' : 'user', all.length > 0 ? all : [nothing], carried);
      return;
    }
    if (turn.role === 'model') {
      if (all.length === 0) return; // no part of it can be sent
      const draft = this.#open('model', carried);
      draft.parts.push(...all);
      for (const { part } of parts) if (part.type === 'tool-call') this.#called.set(part.id, { draft, place: this.#calls++ });
      return;
    }
    const others: JsonObject[] = [];
    for (const { part, sent } of parts) {
      if (part.type === 'tool-result') this.#result(part.id, sent);
      else others.push(...sent);
    }
    if (others.length > 0 || all.length === 0) this.user(all.length > 0 ? others : said(turn), carried);
  }

  /** Parts of the user that are no results. */
  user(parts: readonly JsonObject[], carried: JsonObject = {}): void {
    this.#open('user', carried).parts.push(...parts);
  }

  written(): readonly JsonObject[] {
    const contents: JsonObject[] = [];
    if (this.#options.isTranslated && this.#drafts[0]?.parts.some(isCall)) contents.push({ role: 'user', parts: [nothing] });
    for (const [at, { role, results, parts, media, carried }] of this.#drafts.entries()) {
      for (const one of results.toSorted((a, b) => a.place - b.place)) {
        parts.push(...one.sent);
        media.push(...one.media);
      }
      if (this.#options.signed && role === 'model') signFirst(parts);
      if (this.#options.signed && role === 'model' && this.#options.isTranslated) signImages(parts);
      // Beside the results of several calls the wire takes no other part. https://github.com/google-gemini/gemini-cli/pull/16137
      const isOne = parts.length === 1;
      contents.push({ ...carried, role, parts: isOne ? [...parts, ...media] : parts });
      if (media.length === 0 || isOne) continue;
      const next = this.#drafts[at + 1];
      if (next?.role === 'user' && !next.isResults) next.parts.unshift(...media);
      else contents.push({ role, parts: media });
    }
    return contents;
  }

  /** The last content, if a turn of this role goes on with it; else a new one. */
  #open(role: Draft['role'], carried: JsonObject): Draft {
    const last = this.#drafts.at(-1);
    if (last?.role === role && !last.isResults && isEmpty(last.carried) && isEmpty(carried)) return last;
    const draft: Draft = { role, isResults: false, results: [], parts: [], media: [], carried };
    this.#drafts.push(draft);
    return draft;
  }

  /** @param sent the result, and its media if they are sent beside it */
  #result(id: string, [result, ...media]: readonly JsonObject[]): void {
    const call = this.#called.get(id);
    const at = call ? this.#drafts.lastIndexOf(call.draft) : this.#drafts.length - 1;
    let draft = this.#drafts[call ? at + 1 : at];
    if (!draft?.isResults) {
      draft = { role: 'user', isResults: true, results: [], parts: [], media: [], carried: {} };
      this.#drafts.splice(at + 1, 0, draft);
    }
    draft.results.push({ place: call?.place ?? Number.MAX_SAFE_INTEGER, sent: result ? [result] : [], media });
  }

  #asItCame(role: Draft['role'], parts: readonly JsonObject[], carried: JsonObject): void {
    const isResults = isEmpty(carried) && parts.every((part) => part['functionResponse'] !== undefined);
    const last = this.#drafts.at(-1);
    if (isResults && last?.isResults && last.role === role) last.parts.push(...parts);
    else this.#drafts.push({ role, isResults, results: [], parts: [...parts], media: [], carried });
  }
}

/** Stands for a message of the user of which nothing is sent. @throws Fault `invalid` where it had content */
function said({ parts }: Turn): readonly JsonObject[] {
  const lost = parts.find(({ type }) => type !== 'text' && type !== 'search');
  if (!lost) return [nothing];
  const name = lost.type === 'media' ? lost.kind : lost.type === 'foreign' ? `part of type ${JSON.stringify(foreignName(lost))}` : lost.type;
  throw new Fault('invalid', `turns: a message has nothing but ${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}, which cannot be sent to this provider.`, {
    field: 'turns',
    elsewhere: true,
  });
}

const isCall = (part: JsonObject): boolean => part['functionCall'] !== undefined;

/** Google's placeholder signature for function calls and images that none of its models has signed. https://ai.google.dev/gemini-api/docs/thought-signatures */
const unsigned = 'skip_thought_signature_validator';

/** Models that draw accept earlier images only with a signature: `Image part is missing a thought_signature`. https://github.com/langchain-ai/langchain-google/issues/1431 */
function signImages(parts: JsonObject[]): void {
  for (const [at, part] of parts.entries())
    if (part['inlineData'] !== undefined && part['thoughtSignature'] === undefined) parts[at] = { ...part, thoughtSignature: unsigned };
}

/** Of calls that a model makes together it signs the first. */
function signFirst(parts: JsonObject[]): void {
  const calls = parts.filter(isCall);
  if (calls.length === 0 || calls.some((part) => part['thoughtSignature'] !== undefined)) return;
  const at = parts.indexOf(calls[0]!);
  parts[at] = { ...parts[at], thoughtSignature: unsigned };
}
