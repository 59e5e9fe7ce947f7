import { scan } from '../json/scan.ts';
import { weights } from './message-values.ts';

/** Where a value stands: its first byte, and the one behind its last. */
interface Place {
  readonly from: number;
  readonly to: number;
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openingObject, closingObject, openingList, closingList] = [0x7b, 0x7d, 0x5b, 0x5d];
const blanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Members of a definition that are read. */
const read = ['name', 'description', 'inputSchema', 'annotations'] as const;
/** Levels within a definition: those of a message, without those around it. */
const mostLevels = 60;

/**
 * A message whose list of tools cannot be read as a whole, with those members of its definitions alone that can be: one schema that is nested too deeply, has a
 * key twice or has too many values does not cost the others. It is still to be checked. Undefined: there is no list of tools in it.
 * @param values most values of a member
 */
export function withUsableTools(bytes: Uint8Array, values: number): Uint8Array | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const result = memberOf(buffer, afterBlanks(buffer, 0), 'result');
  const tools = result && memberOf(buffer, result.from, 'tools');
  if (!tools || buffer[tools.from] !== openingList) return undefined;
  const pieces: Buffer[] = [buffer.subarray(0, tools.from + 1)];
  for (const [at, tool] of elementsOf(buffer, tools).entries())
    pieces.push(Buffer.from(at === 0 ? '{' : ',{'), ...membersOf(buffer, tool, values), Buffer.from('}'));
  pieces.push(Buffer.from(']'), buffer.subarray(tools.to));
  return Buffer.concat(pieces);
}

function membersOf(buffer: Buffer, tool: Place, values: number): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (const [name, { from, to }] of membersIn(buffer, tool.from, read)) {
    const value = buffer.subarray(from, to);
    if (isReadable(value, values)) pieces.push(Buffer.from(`${pieces.length === 0 ? '' : ','}"${name}":`), value);
  }
  return pieces;
}

function isReadable(value: Buffer, values: number): boolean {
  try {
    scan(value, { maxTokens: values, maxDepth: mostLevels, weights });
    return true;
  } catch {
    return false;
  }
}

const memberOf = (buffer: Buffer, from: number, name: string) => membersIn(buffer, from, [name]).get(name);

/** The first members of these names of the object that begins there. */
function membersIn(buffer: Buffer, from: number, names: readonly string[]): ReadonlyMap<string, Place> {
  const found = new Map<string, Place>();
  if (buffer[from] !== openingObject) return found;
  for (let at = afterBlanks(buffer, from + 1); buffer[at] === quote && found.size < names.length;) {
    const keyEnd = endOf(buffer, at);
    const between = afterBlanks(buffer, keyEnd);
    if (buffer[between] !== colon) break;
    const value = afterBlanks(buffer, between + 1);
    const to = endOf(buffer, value);
    const name = names.find((one) => keyEnd - at === one.length + 2 && buffer.toString('latin1', at + 1, keyEnd - 1) === one);
    if (name !== undefined && !found.has(name)) found.set(name, { from: value, to });
    at = afterBlanks(buffer, to);
    if (buffer[at] !== comma) break;
    at = afterBlanks(buffer, at + 1);
  }
  return found;
}

/** Those that are looked at: far more than are kept. */
const mostElements = 1000;

function elementsOf(buffer: Buffer, { from, to }: Place): readonly Place[] {
  const found: Place[] = [];
  for (let at = afterBlanks(buffer, from + 1); at < to && buffer[at] !== closingList && found.length < mostElements;) {
    const end = endOf(buffer, at);
    found.push({ from: at, to: end });
    at = afterBlanks(buffer, end);
    if (buffer[at] !== comma) break;
    at = afterBlanks(buffer, at + 1);
  }
  return found;
}

function afterBlanks(buffer: Buffer, from: number): number {
  let at = from;
  while (blanks.has(buffer[at] ?? -1)) at++;
  return at;
}

/** Behind the value that begins there, whatever it is; the end of the bytes, where it has no end. */
function endOf(buffer: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < buffer.length; at++) {
    const byte = buffer[at]!;
    if (byte === quote) {
      at = closingQuote(buffer, at + 1);
      if (depth === 0) return Math.min(at + 1, buffer.length);
    } else if (byte === openingObject || byte === openingList) depth++;
    else if (byte === closingObject || byte === closingList) {
      if (depth <= 1) return depth === 0 ? at : at + 1;
      depth--;
    } else if (depth === 0 && (byte === comma || blanks.has(byte))) return at;
  }
  return buffer.length;
}

function closingQuote(buffer: Buffer, from: number): number {
  let at = from;
  while (at < buffer.length && buffer[at] !== quote) at += buffer[at] === backslash ? 2 : 1;
  return at;
}
