import type { ServerResponse } from 'node:http';
import { validateHeaderName, validateHeaderValue } from '#kit/net/http';
import type { Headers } from './headers.ts';

/** Headers that the runtime has to know of, since it decides by them how the body is framed and whether the connection stays open; it writes their lines. */
const framing: ReadonlySet<string> = new Set(['connection', 'content-length', 'date', 'expect', 'keep-alive', 'trailer', 'transfer-encoding']);

/** The last line of each header. Nearly all are the same from answer to answer, and the runtime would look at every character of each of them again. */
const lastLines = new Map<string, { value: string; line: string }>();
/** Names, and characters of a value, that are kept: more than this server has, should they ever come from elsewhere. */
const mostNames = 200;
const longestValue = 200;
/** What they say is for one client alone. */
const notKept: ReadonlySet<string> = new Set(['set-cookie', 'location', 'content-disposition']);

/**
 * Makes the head of an answer, which goes out with the first of its body.
 * @param parts headers in their order, names in lower case; all but those of framing stand behind the runtime's own
 * @throws TypeError for a name or value that may not stand in a header
 */
export function writeHead(response: ServerResponse, status: number, ...parts: readonly Headers[]): void {
  let lines = '';
  const framed: string[] = [];
  for (const headers of parts) {
    for (let at = 0; at < headers.length; at += 2) {
      const name = headers[at]!;
      const value = headers[at + 1]!;
      const last = lastLines.get(name);
      if (last?.value === value) lines += last.line;
      else if (framing.has(name)) framed.push(name, value);
      else lines += newLine(name, value, last);
    }
  }
  response.writeHead(status, framed);
  const made = response as ServerResponse & Made;
  made._header = `${made._header.slice(0, -2)}${lines}\r\n`;
}

/** Node's text of the head, which ends in an empty line. */
interface Made {
  _header: string;
  readonly _headerSent: boolean;
}

function newLine(name: string, value: string, last: { value: string; line: string } | undefined): string {
  if (!last) validateHeaderName(name);
  validateHeaderValue(name, value);
  const line = `${name}: ${value}\r\n`;
  if (value.length > longestValue || notKept.has(name)) return line;
  if (last) {
    last.value = value;
    last.line = line;
  } else if (lastLines.size < mostNames) lastLines.set(name, { value, line });
  return line;
}

/** Gives up the head, which went out with the first piece: Node would keep it until the answer ends, in the hundred pieces that it was built from. */
export function forgetHead(response: ServerResponse): void {
  const sent = response as ServerResponse & Made;
  if (sent._headerSent) sent._header = 'sent'; // that there is one is all that Node looks at from here on
}
