import { objectIn } from '../json/foreign.ts';
import type { GuardedStreams } from '../net/guarded-stream.ts';
import { withMessageLimit } from './message-limit.ts';

export interface SignInDeps {
  readonly streams: GuardedStreams;
  /** The user, for the limits of concurrent requests. */
  readonly owner: string;
  /** Origins that may be without TLS. */
  readonly allowed: readonly string[];
}

/** The message is our own, and repeats nothing of the response. */
export class SignInFailure extends Error {
  /** The authorization server has said no: asking again is of no use. */
  readonly isRefused: boolean;

  constructor(message: string, { isRefused = false, cause }: { readonly isRefused?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause });
    this.name = 'SignInFailure';
    this.isRefused = isRefused;
  }
}

/** Bytes of what an authorization server answers. */
export const mostAnswer = 65_536;
/** The library checks each value of an answer: many that are wrong would hold the event loop. */
const answerLimits = { bytes: mostAnswer, values: 5000 };
/** Characters of an address. */
export const mostAddress = 8192;

export type Fetching = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * The standard fetch, of permitted addresses, with bounds. Failures are those of the standard one, which the library tells from answers.
 * @param more members that answers have where they do not say otherwise
 */
export function signInFetch(deps: SignInDeps, signal: AbortSignal, more: JsonMembers = {}): Fetching {
  return async (address, { method = 'GET', headers, body } = {}) => {
    const url = permitted(address, deps);
    const text = body instanceof URLSearchParams ? body.toString() : body;
    const { streams, owner } = deps;
    let response: Response;
    try {
      response = await streams.open({
        url,
        owner,
        method,
        headers: Object.fromEntries(new Headers(headers)),
        ...(typeof text === 'string' ? { body: text } : {}),
        maxBytes: mostAnswer,
        signal,
      });
    } catch (cause) {
      throw new TypeError('It cannot be fetched.', { cause });
    }
    return withMembers(withMessageLimit(response, answerLimits), more);
  };
}

type JsonMembers = Readonly<Record<string, unknown>>;

/** A successful answer with these members where it lacks them, and without members that are null or empty, which the library rejects. */
async function withMembers(response: Response, more: JsonMembers): Promise<Response> {
  if (!response.ok || !response.body) return response;
  const text = await response.text().catch(() => ''); // what is too large or breaks off is read as empty, which the library refuses
  const members = objectIn(text);
  const said = members && Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null && value !== ''));
  return new Response(said ? JSON.stringify({ ...more, ...said }) : text, { status: response.status, headers: response.headers });
}

/** @throws TypeError, whose cause is a SignInFailure, for an address that nobody is to be sent to */
export function permitted(address: string | URL, { allowed }: Pick<SignInDeps, 'allowed'>): URL {
  const url = URL.parse(String(address));
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && allowed.some((origin) => URL.parse(origin)?.origin === url.origin));
  if (!url || !isAllowed || url.username || url.password || url.href.length > mostAddress)
    throw new TypeError('A wrong address.', {
      cause: new SignInFailure('The MCP server, or its authorization server, names an address for the sign-in that is no https address.'),
    });
  return url;
}
