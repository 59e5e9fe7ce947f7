import { setImmediate as nextTurn } from 'node:timers/promises';
import { foreignLimits, parseForeign } from './foreign.ts';
import { BadJson, parseJson } from './scan.ts';

/**
 * JSON objects with one long list, such as the vectors of an answer: megabytes of numbers, which are parsed and serialized element by element in several turns
 * of the event loop. All at once would hold the loop for 10 ms a megabyte.
 */

/** Most elements; most bytes of one, and of everything but the list. */
const mostElements = 100_000;
const mostBytes = 1_048_576;
/** Bytes that are looked at, and bytes or characters that are parsed or serialized, in one turn. */
const scannedInTurn = 4_194_304;
const parsedInTurn = 524_288;
/** What an element takes, however short it is, as bytes that are parsed in the same time. */
const eachElement = 32;
const maxDepth = 64;
/** Bytes of white space in an empty list. */
const mostSpace = 100;

/**
 * Parses a JSON object whose member `name` may be a long list; other texts as `JSON.parse` does.
 * @throws BadJson, also where an element, the elements or the rest are too many
 */
export async function readLongList(bytes: Uint8Array, name: string): Promise<unknown> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const places = await placesIn(buffer, name);
  if (!places) return parseJson(withinLimit(buffer), foreignLimits);
  const { from, to, ends } = places;
  const rest = parseJson(withinLimit(Buffer.concat([buffer.subarray(0, from), Buffer.from('0'), buffer.subarray(to)])), foreignLimits) as Record<
    string,
    unknown
  >;
  rest[name] = await elementsOf(buffer, from + 1, ends);
  return rest;
}

/** Serializes a JSON object whose member `name` is a long list, as `JSON.stringify` does. */
export async function writeLongList(value: object, name: string): Promise<string> {
  const list = (value as Record<string, readonly unknown[]>)[name]!;
  const mark = crypto.randomUUID();
  const [before, after] = JSON.stringify({ ...value, [name]: mark }).split(`"${mark}"`) as [string, string];
  let text = `${before}[`;
  let left = parsedInTurn;
  for (const [at, element] of list.entries()) {
    const one = JSON.stringify(element);
    text += at === 0 ? one : `,${one}`;
    left -= one.length + eachElement;
    if (left > 0) continue;
    await nextTurn();
    left = parsedInTurn;
  }
  return `${text}]${after}`;
}

async function elementsOf(buffer: Buffer, begin: number, ends: readonly number[]): Promise<readonly unknown[]> {
  const elements: unknown[] = [];
  let from = begin;
  let left = parsedInTurn;
  for (const end of ends) {
    const piece = buffer.subarray(from, end);
    if (ends.length === 1 && piece.length < mostSpace && piece.toString().trim() === '') break; // the list is empty
    elements.push(parseForeign(withinLimit(piece)));
    from = end + 1;
    left -= piece.length + eachElement;
    if (left > 0) continue;
    await nextTurn();
    left = parsedInTurn;
  }
  return elements;
}

interface ListPlaces {
  /** Of the list with its brackets. */
  readonly from: number;
  readonly to: number;
  /** Where each element ends; the next begins behind the comma there. */
  readonly ends: readonly number[];
}

const [quote, backslash, comma, openList, closeList, openObject, closeObject] = [0x22, 0x5c, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d];

/** The places of the first list that is a member of this name. What is no JSON is found out when the pieces are parsed. */
async function placesIn(buffer: Buffer, name: string): Promise<ListPlaces | undefined> {
  const key = Buffer.from(JSON.stringify(name));
  const ends: number[] = [];
  let depth = 0;
  let from = -1;
  let isNamed = false;
  for (let at = 0, pause = scannedInTurn; at < buffer.length; at++) {
    if (at >= pause) {
      await nextTurn();
      pause = at + scannedInTurn;
    }
    switch (buffer[at]) {
      case quote: {
        const end = endOfString(buffer, at);
        isNamed = depth === 1 && key.equals(buffer.subarray(at, end + 1));
        at = end;
        break;
      }
      case openObject:
      case openList:
        if (++depth > maxDepth) throw new BadJson('The text is nested too deeply.');
        if (isNamed && depth === 2 && from < 0 && buffer[at] === openList) from = at;
        break;
      case closeObject:
      case closeList:
        if (--depth === 1 && from >= 0) {
          if (buffer[at] !== closeList) throw notJson();
          ends.push(at);
          return { from, to: at + 1, ends };
        }
        break;
      case comma:
        if (depth === 2 && from >= 0 && ends.push(at) >= mostElements) throw new BadJson(`The list has more than ${mostElements} elements.`);
        break;
      default:
    }
  }
  return undefined;
}

/** @throws BadJson for one that is too long */
function endOfString(buffer: Buffer, start: number): number {
  for (let at = buffer.indexOf(quote, start + 1); at >= 0; at = buffer.indexOf(quote, at + 1)) {
    if (at - start > mostBytes) throw tooLong();
    let slashes = 0;
    while (buffer[at - 1 - slashes] === backslash) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return buffer.length;
}

function withinLimit(bytes: Buffer): Buffer {
  if (bytes.length > mostBytes) throw tooLong();
  return bytes;
}

const tooLong = () => new BadJson(`A part of the text is longer than ${mostBytes} bytes.`);

const notJson = () => new BadJson('The text is not valid JSON.');
