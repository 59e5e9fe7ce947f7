import { UpstreamError, type UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import { codeInBrackets } from '#kit/net/error-code';
import { refusalText } from './post.ts';
import type { Probe, Probed } from './provider.ts';
import { NoToken } from './tokens.ts';

/** A probe request, and how to decode its refusals. */
interface Question {
  readonly region?: string;
  /** `key 2 of 3`; absent if there is at most one key. */
  readonly credential?: string | undefined;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly url: URL;
  readonly path: string;
  /** @throws Fault if no credential can be obtained */
  readonly headers: (signal: AbortSignal) => Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>;
  /** Absent: a GET request. */
  readonly body?: string;
  readonly refusal: (status: number, text: string, headers: UpstreamResponse['headers']) => Fault;
}

/** One probe per key; a single one without a key if there is none. */
export function probesByKey(keys: readonly string[], ask: (key: string | undefined) => Omit<Question, 'credential'>): readonly Probe[] {
  if (keys.length < 2) return [probe(ask(keys[0]))];
  return keys.map((key, at) => probe({ ...ask(key), credential: `key ${at + 1} of ${keys.length}` }));
}

/** A probe uses the same connections, proxy and certificates as calls do. */
export function probe(question: Question): Probe {
  const { region, credential } = question;
  return {
    ...(region === undefined ? {} : { region }),
    ...(credential === undefined ? {} : { credential }),
    async ask(signal) {
      try {
        return await sendProbe(question, signal);
      } catch (error) {
        return { state: 'failed', says: whyNot(error) };
      }
    },
  };
}

/** Failover's deadlines do not apply: the signal ends the probe. */
const patience = { headSeconds: 60, quietSeconds: 60 };

async function sendProbe({ upstreams, clock, url, path, headers, body, refusal }: Question, signal: AbortSignal): Promise<Probed> {
  const signedIn = await headers(signal);
  const startedAt = clock.monotonic();
  const request = { url, path, headers: { 'accept-encoding': 'identity', ...signedIn }, signal, ...patience };
  const response = await (body === undefined ? upstreams.get(request) : upstreams.post({ ...request, body }));
  try {
    const milliseconds = clock.monotonic() - startedAt;
    const date = Date.parse(response.headers.date ?? '');
    const { status } = response;
    const fault = status < 300 ? undefined : refusal(status, await refusalText(response), response.headers);
    return { ...judged(status, fault, path), milliseconds, ...(Number.isNaN(date) ? {} : { date }) };
  } finally {
    response.leave();
  }
}

function judged(status: number, fault: Fault | undefined, path: string): Pick<Probed, 'state' | 'says'> {
  if (!fault) return { state: 'ok', says: 'answers' };
  if (fault.details.key && saidCode(fault) === 'insufficient_quota')
    return { state: 'failed', says: `answers, but the account has no credit left (${status}, insufficient_quota)` };
  if (fault.details.key) return { state: 'failed', says: `rejects the credentials (${status})` };
  if (status === 429) return { state: 'warning', says: 'answers, but its rate limit is exceeded at the moment (429)' };
  if (fault.details.reason === 'model') return { state: 'warning', says: `answers, but does not have the model (${status})` };
  if (status === 404 || status === 405) return { state: 'warning', says: `has nothing at ${path.split('?')[0]} (${status}): check the path of baseUrl` };
  if (status >= 500) return { state: 'failed', says: `answers with an error (${status})` };
  return { state: 'warning', says: `answers, but rejects the test request (${status})` };
}

const saidCode = ({ details: { cause } }: Fault): unknown => (isObject(cause) ? cause['code'] : undefined);

/** The reason of a failure, for operators: error codes of the system and of TLS, and our own words about a key file; never another error message, which may contain secrets. */
function whyNot(error: unknown): string {
  if (error instanceof UpstreamError) return `${problems[error.problem]}${codeInBrackets(error)}`;
  if (error instanceof Fault) return `the credentials cannot be obtained${reasonOf(error.details.cause) ?? codeInBrackets(error)}`;
  return 'did not answer in time';
}

const reasonOf = (cause: unknown): string | undefined =>
  cause instanceof NoToken ? `: ${cause.message.charAt(0).toLowerCase()}${cause.message.slice(1).replace(/\.$/, '')}` : undefined;

const problems: Readonly<Record<UpstreamError['problem'], string>> = {
  refused: 'cannot be reached',
  broken: 'closes the connection without an answer',
  'slow-head': 'does not answer',
  'slow-body': 'does not answer',
  garbled: 'does not answer with valid HTTP',
  'too-large': 'sends an answer that is too large',
  'no-room': 'sends an answer that is too large',
  encoding: 'sends an answer that cannot be decoded',
};
