/** The table of refusals: the internal code of each fault and its HTTP status. Each dialect adds its own names for them. */
export const statuses = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'wrong-method': 405,
  'slow-client': 408,
  conflict: 409,
  'too-large': 413,
  'unsupported-type': 415,
  unprocessable: 422,
  'quota-spent': 429,
  'rate-limited': 429,
  internal: 500,
  unsupported: 501,
  'upstream-failed': 502,
  overloaded: 503,
  'timed-out': 504,
} as const;

export type FaultCode = keyof typeof statuses;

export interface FaultDetails {
  /** The field at fault, as the client spelled it: `messages[0].content`. */
  readonly field?: string;
  /** The whole path of a field of which `field` is the beginning, in a provider's words. */
  readonly place?: string;
  /** Narrows the code, for dialects with an error of their own for the case. */
  readonly reason?:
    | 'missing'
    | 'not-json'
    | 'model'
    | 'scope'
    | 'content-policy'
    | 'context-length'
    | 'stream-cut'
    | 'field-unknown'
    | 'role-unknown'
    | 'role-order'
    | 'roles-alternate'
    | 'system-first'
    | 'no-system'
    | 'text-only'
    | 'thread'
    | 'null-character'
    | 'half-character';
  /** The values that the provider lists as those that the field accepts, as far as they are words. */
  readonly listed?: readonly string[];
  /** Seconds until another try may succeed. */
  readonly retryAfter?: number;
  /** The values that the provider accepts, where it names the least and the most. */
  readonly range?: { readonly least: number; readonly most: number };
  /** The output token limit of the model, where the provider names it. */
  readonly maxOutputTokens?: number;
  /** Output tokens for which the conversation leaves room in the context, where the provider names that and was asked for more. */
  readonly outputRoom?: number;
  /** The tokens of the conversation, and the most that the model takes, where the provider names both. */
  readonly context?: { readonly tokens: number; readonly most: number };
  /** The kind of limit of a plan that refused the call, for the metrics. */
  readonly limit?: string;
  /** A limit of the user kept the call from beginning: it may be made later. */
  readonly unbegun?: true;
  /** A limit that the call can never meet, however long it waits: clients are told not to send it again by themselves. */
  readonly never?: true;
  /** Whether another target might accept the call. */
  readonly elsewhere?: boolean;
  /** The provider rejected our key or our account: another key may work, and then another provider, but no other region of this one. */
  readonly key?: boolean;
  /** The request alone is larger than a limit per minute, which is not used up: others may go on using the target, and another provider is more likely to accept it. */
  readonly exceedsLimit?: boolean;
  /** A rate limit is exceeded with one key of the provider, and another may be used at once: the target need not cool down. */
  readonly otherKey?: true;
  /** The target does not have the model: it need not be asked for it again soon. */
  readonly absent?: boolean;
  /** The provider's own message about the request, as quoted in `message`: one sentence, masked. */
  readonly said?: string;
  /** What the answer failed for the lack of, in the words of the wire: the dialect may learn to send it. */
  readonly lacks?: string;
  /** An answer of status 200 was this refusal and nothing else: it counts as if its status had said so. */
  readonly asRefusal?: true;
  /** The provider names the interface that accepts the request in its place. */
  readonly instead?: 'responses';
  /** What the provider does not support of the call of a strict client, as `field: reason`. */
  readonly ignored?: readonly string[];
  /** The methods that the address takes, for the header `Allow`. */
  readonly allow?: string;
  /** For the log; never leaves the server. */
  readonly cause?: unknown;
}

/** A refusal. `message` is for the client: it contains no key, and of an upstream body only what `said` may contain. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly details: FaultDetails;

  constructor(code: FaultCode, message: string, details: FaultDetails = {}) {
    super(message, { cause: details.cause });
    this.name = 'Fault';
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return statuses[this.code];
  }
}

/** @param field its path as a client writes it @param text what is wrong with it, as the rest of a sentence: `must be an object` */
export const invalid = (field: string, text: string) => new Fault('invalid', `${field} ${text}.`, { field });

/** The same of a field that was left out: `is required`. */
export const missing = (field: string, text = 'is required') => new Fault('invalid', `${field} ${text}.`, { field, reason: 'missing' });

/** A full queue for a shared resource (a thread): it has reached its limit for the caller, or its total. */
export function queueFull({ whose }: { readonly whose: 'owner' | 'all' }): Fault {
  return whose === 'owner'
    ? new Fault('rate-limited', 'Too many of your requests wait for the same work: let some of them finish first.', { retryAfter: 1, unbegun: true })
    : new Fault('overloaded', 'The server has too much of this work to do at the moment.', { retryAfter: 1 });
}

/** A credential that lets nobody in. The text is the same for all reasons, so that guessing tells nothing. */
export const badKey = () => new Fault('unauthenticated', 'The API key is not valid: it is mistyped, has expired or was revoked, or belongs to another server.');

/** The same of a session. */
export const badSession = () => new Fault('unauthenticated', 'The session is over: sign in again.');

/** The same of an access token. */
export const badToken = () => new Fault('unauthenticated', 'The access token is not valid: it has ended or was revoked, or belongs to another server.');

/** The memory budget of requests is used up. */
export const noRoom = (cause?: unknown) =>
  new Fault('overloaded', 'Too much is held in memory for large requests and answers: send this one again in a moment.', { retryAfter: 2, cause });

/** What was looked for; undefined where it is not there. */
export async function ifFound<Found>(looking: Promise<Found>): Promise<Found | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (error instanceof Fault && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** The reason of an abort: that of the signal, even if a library threw an AbortError of its own. */
export function reasonOf(error: unknown, signal: AbortSignal): unknown {
  return signal.aborted && error instanceof Error && error.name === 'AbortError' ? signal.reason : error;
}

/** Converts any error to a fault. An error that is no fault is a bug of ours. */
export const faultOf = (error: unknown): Fault =>
  error instanceof Fault ? error : new Fault('internal', 'Something went wrong on our side.', { cause: error });

/** The refusal of a strict client's call, some fields of which the provider does not support. @param ignored as `field: reason` */
export function notHonoured(ignored: readonly string[], details: FaultDetails = {}): Fault {
  const [field] = /^[A-Za-z_][\w.[\]]{0,120}(?=:)/.exec(ignored[0] ?? '') ?? [];
  const reasons = ignored.join('; ').replace(/\.$/, '');
  return new Fault('invalid', `The provider does not support every field of the request: ${reasons}.`, { ...(field ? { field } : {}), ...details, ignored });
}

/** @param allow the methods that the address takes: `POST, GET` */
export const wrongMethod = (allow: string): Fault => new Fault('wrong-method', `This address takes ${allow}.`, { allow });

/** Only Anthropic's API takes a limit of 0, which fills its cache: https://platform.claude.com/docs/en/build-with-claude/prompt-caching */
export const nothingAllowed = (): Fault =>
  new Fault('invalid', 'max_tokens must be at least 1: the provider cannot fill its cache without generating an answer.', {
    field: 'max_tokens',
    elsewhere: true,
  });
