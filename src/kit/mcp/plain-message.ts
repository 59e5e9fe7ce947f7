import { definitionsIn, isRecord, mostDefinitions, mostTools, type McpDefinition } from './definitions.ts';
import { textOfContent } from './result.ts';

/*
 * The library checks each member of a message against its schemas. For hundreds of thousands of members that are wrong this takes seconds, in one turn of the
 * event loop. So it is shown what it needs, in a form that is known to be right.
 */

/** What came of a list of tools so far. */
export interface Collected {
  definitions: McpDefinition[];
  bytes: number;
  isCut: boolean;
  isFull: boolean;
  /** A page of it is larger than what is read at once. */
  isBroken: boolean;
  unusable: string[];
}

export const nothingYet = (): Collected => ({ definitions: [], bytes: 0, isCut: false, isFull: false, isBroken: false, unusable: [] });
export const forget = (collected: Collected) => void Object.assign(collected, nothingYet());

/** What is left out of a list, for the owner of the server; null: nothing. */
export function leftOutOf({ isCut, isFull, isBroken, unusable }: Collected): string | null {
  const notes = [
    ...(unusable.length > 0 ? [unusableNote(unusable)] : []),
    ...(isCut ? ['The definitions of the tools of the MCP server have more than 512 KB together: the tools behind these are left out.'] : []),
    ...(isFull && !isCut ? [`The MCP server has more than ${mostTools} tools: the tools behind these are left out.`] : []),
    ...(isBroken ? [aPage] : []),
  ];
  return notes.length === 0 ? null : notes.join(' ');
}

const aPage =
  'A page of the list of tools of the MCP server is larger than 1 MB, which is the most that is read at once: its tools and those behind it are left out.';

/** Names in a note. */
const mostNamed = 5;

function unusableNote(unusable: readonly string[]): string {
  const names = unusable.filter((name) => name !== '').slice(0, mostNamed);
  const others = unusable.length - names.length;
  const listed = [...names, ...(others > 0 ? [names.length === 0 ? String(others) : `${others} more`] : [])].join(', ');
  return `Tools of the MCP server are left out: ${listed}. Their schemas are nested deeper than 60 levels, are larger than 64 KB or are not those of an object, or their names are not usable or there already.`;
}

/** A message as the library is shown it: the tools of a list are collected, the contents of a result are one text, and large members that nobody reads are left out. */
export function plainMessage(message: unknown, collected: Collected): unknown {
  if (!isRecord(message)) return message;
  const { result, params, error } = message;
  if (isRecord(result)) return { ...message, result: plainResult(result, collected) };
  if (isRecord(error)) return { ...message, error: smallMembers(error) };
  const isQuestion = message['method'] === 'elicitation/create'; // one that was read before
  return isRecord(params) && !isQuestion ? { ...message, params: smallMembers(params) } : message;
}

function plainResult(
  { tools, nextCursor, content, structuredContent, inputRequests, ...others }: Readonly<Record<string, unknown>>,
  collected: Collected,
): object {
  const rest = smallMembers(others);
  if (Array.isArray(tools)) return { ...rest, ...collectedTools(tools as readonly unknown[], nextCursor, collected) };
  const said = Array.isArray(content) ? textOfContent(content as readonly unknown[]) : '';
  const text = said === '' && (structuredContent ?? undefined) !== undefined ? JSON.stringify(structuredContent) : said; // since 2026-07-28 of any type
  return {
    ...rest,
    ...(Array.isArray(content) || text !== '' ? { content: text === '' ? [] : [{ type: 'text', text }] } : {}),
    ...(isRecord(inputRequests) ? { inputRequests } : {}),
  };
}

function collectedTools(tools: readonly unknown[], nextCursor: unknown, collected: Collected): object {
  const { definitions: found, unusable, isFull } = definitionsIn(tools);
  if (collected.unusable.length < mostTools) collected.unusable.push(...unusable);
  const before = collected.definitions.length;
  for (const one of found.slice(0, mostTools - before)) {
    collected.isCut ||= collected.bytes + one.bytes > mostDefinitions;
    if (collected.isCut) break;
    collected.bytes += one.bytes;
    collected.definitions.push(one);
  }
  const isEnough = collected.isCut || collected.definitions.length >= mostTools || typeof nextCursor !== 'string';
  if (collected.definitions.length >= mostTools) collected.isFull ||= isFull || found.length > mostTools - before || typeof nextCursor === 'string';
  return { tools: shownTools(collected.definitions.slice(before)), ...(isEnough ? {} : { nextCursor }) };
}

/** Bytes of all schemas that the library is shown. */
const mostShown = 65_536;

/** Of their schemas the library needs those that name arguments which are sent as headers (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports). */
function shownTools(definitions: readonly McpDefinition[]): readonly object[] {
  let left = mostShown;
  return definitions.map(({ name, inputSchema, namesHeaders, bytes }) => {
    const isShown = namesHeaders && bytes <= left;
    if (isShown) left -= bytes;
    return { name, inputSchema: isShown ? inputSchema : { type: 'object' } };
  });
}

/** Values that are passed on of members that the library checks by itself. */
const mostValues = 1000;

/** The members of an object that have together no more values than these. */
export function smallMembers(members: Readonly<Record<string, unknown>>, most = mostValues): object {
  let left = most;
  const small = Object.entries(members).filter(([, value]) => {
    const count = countIn(value, left);
    if (count > left) return false;
    left -= count;
    return true;
  });
  return Object.fromEntries(small);
}

/** The values in a value, with itself; where there are more than `most`, some number above it. */
function countIn(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 1;
  let count = 1;
  for (const one of Object.values(value)) {
    if (count > most) break;
    count += countIn(one, most - count);
  }
  return count;
}
