import { createHash, type Hash } from 'node:crypto';
import type { ForeignPart, MediaPart, Part, Turn } from '#core/conversation';
import type { JsonObject } from '#core/json';
import { objectBy } from '#kit/json/foreign';
import { valueIn } from '#kit/json/value-in';

/** Parts of a turn, and of a result, that count. */
const mostParts = 64;
/** Characters of each end of a text. */
const end = 1000;
/** Characters of arguments and results in the turns before, and of one of them, that are compared as JSON; further ones are compared as texts. */
const mostBefore = 100_000;
const mostOfOne = 4000;
/** Characters of the arguments of the calls whose positions are asked for. */
const mostOfCalls = 200_000;
/** Characters of the arguments of one such call; those of a longer one do not count. */
export const mostArguments = 16_384;
/** Positions are known of the calls of this many answers, the newest. */
const mostAnswers = 500;
/** Levels of a JSON value that count. */
const deepest = 32;

interface Answer {
  /** Digest of all turns before the answer. */
  readonly digest: string;
  /** Calls in the turns of the same answer before this one. */
  readonly calls: number;
}

/**
 * The positions of the calls of a conversation: each is a digest of all turns before the answer, and of the call's own name and arguments. Thoughts given to a
 * wrong call do more harm than missing ones, so everything counts that makes one conversation differ from another, and nothing that a client may change when
 * it returns the conversation: not the system prompt (which may have the time), ids, thoughts, signatures or cache marks, nor the spaces around a text, empty
 * texts, the pieces in which an answer came, or how a JSON value is written. A client that shortens its history gets no thoughts back by position.
 */
export class Positions {
  readonly #turns: readonly Turn[];
  #answers: ReadonlyMap<number, Answer> | undefined;
  #left = mostOfCalls;

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
  }

  /** @param at index of the model's turn; `turns.length` for the answer in progress. @param ordinal index of the call among those of the turn. @param json its arguments; undefined where they are too long */
  of(at: number, ordinal: number, name: string, json: string | undefined): string {
    this.#answers ??= answersIn(this.#turns);
    const { digest = '', calls = 0 } = this.#answers.get(at) ?? {};
    const compared = json !== undefined && json.length <= mostArguments ? json : '';
    this.#left -= compared.length;
    const hash = createHash('sha256').update(`${digest} ${endsOf(name)} ${this.#left < 0 ? '' : argumentsIn(compared)}`);
    return `${hash.digest('base64url')} ${calls + ordinal}`;
  }
}

/** One pass over the conversation, whose digest is noted before each answer. */
function answersIn(turns: readonly Turn[]): ReadonlyMap<number, Answer> {
  const answers = new Map<number, Answer>();
  const running = new Running();
  const begins = (at: number) => turns[at]?.role === 'model' && turns[at - 1]?.role !== 'model';
  let first = turns.length;
  for (let left = mostAnswers; first > 0 && left > 0; first--) if (begins(first - 1)) left--;
  let digest = '';
  let calls = 0;
  for (const [at, turn] of turns.entries()) {
    if (begins(at)) {
      running.closeAnswer();
      digest = at >= first ? running.digest() : '';
      calls = 0;
    }
    if (turn.role === 'model') {
      answers.set(at, { digest, calls });
      calls += turn.parts.filter(({ type }) => type === 'tool-call').length;
    }
    running.add(turn);
  }
  const isOpen = turns.at(-1)?.role === 'model'; // the answer goes on where the last turn ends
  if (!isOpen) running.closeAnswer();
  answers.set(turns.length, isOpen ? { digest, calls } : { digest: running.digest(), calls: 0 });
  return answers;
}

/** The digest of a conversation that grows. */
class Running {
  readonly #hash: Hash = createHash('sha256');
  #pending = '';
  /** The text of the answer so far, which may have come in pieces. */
  #text = '';
  #left = mostBefore;

  add({ role, parts }: Turn): void {
    if (role === 'system') return;
    if (role === 'user') this.closeAnswer();
    for (const part of parts.slice(0, mostParts)) this.#part(part, role);
  }

  closeAnswer(): void {
    this.#write('model', this.#text);
    this.#text = '';
  }

  digest(): string {
    this.#flush();
    return this.#hash.copy().digest('base64url');
  }

  #part(part: Part, role: Turn['role']): void {
    switch (part.type) {
      case 'text':
      case 'refusal':
        if (role === 'model') this.#text += part.text;
        else this.#write('text', part.text);
        break;
      case 'media':
        this.#write('media', contentOf(part));
        break;
      case 'tool-call':
        this.#put(`call ${endsOf(part.name)} ${this.#json(part.json, argumentsIn)}`);
        break;
      case 'tool-result':
        this.#put(`result ${part.parts.length}`);
        for (const one of part.parts.slice(0, mostParts))
          if (one.type === 'text') this.#put(this.#json(one.text.trim(), valueOf));
          else this.#part(one, role);
        break;
      case 'foreign':
        if (role === 'user') this.#foreign(part); // in an answer they may be thoughts
        break;
      case 'thought':
      case 'search':
        break;
      default:
        part satisfies never;
    }
  }

  #foreign({ value }: ForeignPart): void {
    const room = { left: Math.min(mostOfOne, this.#left) };
    const before = room.left;
    this.#put(`foreign ${canonical(value, room)}`);
    this.#left -= before - Math.max(0, room.left);
  }

  /** Canonical JSON while the budget lasts, otherwise the ends of the text. */
  #json(json: string, read: (json: string) => string): string {
    if (json.length > mostOfOne || json.length > this.#left) return endsOf(json);
    this.#left -= json.length;
    return read(json);
  }

  #write(kind: string, text: string): void {
    const trimmed = text.trim();
    if (trimmed !== '') this.#put(`${kind} ${endsOf(trimmed)}`);
  }

  #put(line: string): void {
    this.#pending += `${line}\n`;
    if (this.#pending.length > 16_384) this.#flush();
  }

  #flush(): void {
    this.#hash.update(this.#pending);
    this.#pending = '';
  }
}

const endsOf = (text: string): string => (text.length <= 2 * end ? `${text.length} ${text}` : `${text.length} ${text.slice(0, end)} ${text.slice(-end)}`);

const contentOf = ({ base64, url, fileId }: MediaPart): string => base64 ?? url ?? fileId ?? '';

/** Arguments that are no object come back as one with the member `arguments` from clients whose wire has objects. */
const argumentsIn = (json: string): string => canonical(json === 'null' ? {} : (objectBy(json, JSON.parse) ?? { arguments: json }), { left: mostArguments });

/** The value of a text that is an object or a list; any other stays a text. */
function valueOf(text: string): string {
  const value = /^[[{]/.test(text) ? valueIn(text) : undefined;
  return value === undefined ? endsOf(text) : canonical(value, { left: mostOfOne });
}

/**
 * The text of a JSON value, whatever the order of its members and the space between them, and without marks of a cache.
 * @param room characters that may be written, roughly; of an object or a list with more members than that only their number is
 */
function canonical(value: unknown, room: { left: number }, depth = 0): string {
  if (room.left <= 0 || depth > deepest) return '';
  if (typeof value !== 'object' || value === null) {
    const text = typeof value === 'string' ? `"${endsOf(value)}` : String(value);
    room.left -= text.length;
    return text;
  }
  const names = Array.isArray(value) ? [] : Object.keys(value);
  const count = Array.isArray(value) ? value.length : names.length - (Object.hasOwn(value, cacheMark) ? 1 : 0);
  room.left -= 2 + count;
  if (room.left <= 0) return String(count);
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one, room, depth + 1)).join(',')}]`;
  const members = names.filter((name) => name !== cacheMark).toSorted();
  return `{${members.map((name) => `${endsOf(name)}:${canonical((value as JsonObject)[name], room, depth + 1)}`).join(',')}}`;
}

const cacheMark = 'cache_control';
