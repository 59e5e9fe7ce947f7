import { setImmediate as nextTurn } from 'node:timers/promises';
import { openFairSemaphore, QueueFull, type FairSemaphore } from '../async/fair-semaphore.ts';
import { stepOverContinue } from '../upstream/ignore-100-continue.ts';
import { UpstreamResponse } from '../upstream/response.ts';
import { GuardedDial, theInternet } from './guarded-dial.ts';
import { NotFetched, parsedUrl, type GuardSettings } from './guarded-fetch.ts';

/**
 * The guarded fetch for protocols: any method, status and header, and the body as a stream, in the form of the standard `fetch`. Every request is checked and
 * dialled by its checked address, as in `guarded-fetch`. A redirect is never followed here: its response is given back, and whoever follows it asks again.
 */
export interface GuardedStreams {
  /** @throws NotFetched; QueueFull where too much is open; or the signal's reason */
  open(wanted: StreamWanted): Promise<Response>;
}

export interface StreamWanted {
  readonly url: string | URL;
  /** The owner, for the limits of concurrent requests per owner. */
  readonly owner: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Limit of the decompressed body (bytes); a stream that passes it breaks. */
  readonly maxBytes: number;
  /** A stream without an end, such as server-sent events: only its head has a deadline, and it counts apart from the rest. */
  readonly isLong?: boolean;
  /** Deadline of the whole exchange in place of the usual one: for what waits for a person. It counts apart from the rest too. */
  readonly seconds?: number;
}

export interface GuardedStreamsSettings extends Omit<GuardSettings, 'seconds'> {
  /** Deadline of a whole exchange that is not long. */
  readonly seconds: number;
}

/** Deadline for the head of a long stream. */
const headSeconds = 10;
/** Deadline for the body of a refusal, whose status has said what counts. */
const refusalMilliseconds = 2000;
const unlimited = { jobs: Infinity, size: Infinity };
/** Long streams never wait: one too many is refused. */
const longBounds = { each: 8, all: 256, unfinished: { each: { jobs: 8, size: Infinity }, all: { jobs: 256, size: Infinity } } };
const shortBounds = { each: 8, all: 128, unfinished: { each: { jobs: 64, size: Infinity }, all: unlimited } };
/** Statuses whose responses have no body. */
const bodiless = new Set([204, 205, 304]);
/** Bytes that are delivered per turn of the event loop: what reads them parses JSON-RPC messages out of them. */
const turnBytes = 16_384;

export function openGuardedStreams({ clock, outside = theInternet(), seconds, ...settings }: GuardedStreamsSettings): GuardedStreams {
  stepOverContinue();
  const dial = new GuardedDial({ ...settings, outside, seconds: headSeconds });
  const lines = { long: openFairSemaphore(longBounds, clock), short: openFairSemaphore(shortBounds, clock), patient: openFairSemaphore(shortBounds, clock) };
  const watch = { clock, add() {}, delete() {} }; // the deadlines here cover it

  /** @param ended called once, when the exchange is over */
  async function ask(wanted: StreamWanted, signal: AbortSignal, ended: () => void): Promise<Response> {
    const url = parsedUrl(String(wanted.url));
    const { dispatcher, origin } = dial.to(url, await dial.addresses(url, signal));
    const over = () => {
      signal.removeEventListener('abort', over);
      void dispatcher.destroy();
      ended();
    };
    signal.addEventListener('abort', over); // also where nobody reads the body
    try {
      const { method = 'GET', body = null } = wanted;
      const headers = { 'accept-encoding': 'identity', 'user-agent': 'Dragoman', ...wanted.headers, host: url.host };
      const path = `${url.pathname}${url.search}`;
      const answer = await new Promise<UpstreamResponse>((resolve, reject) => {
        const request = { url, path, headers, body: body ?? '', signal, headSeconds: wanted.seconds ?? seconds, quietSeconds: wanted.seconds ?? seconds };
        dispatcher.dispatch({ origin, path, method, headers, body }, new UpstreamResponse(request, watch, resolve, reject));
      });
      return standardResponse(answer, wanted.maxBytes, over);
    } catch (error) {
      over();
      throw error;
    }
  }

  return {
    async open(wanted) {
      wanted.signal.throwIfAborted();
      const over = new AbortController();
      const left = () => over.abort(wanted.signal.reason);
      wanted.signal.addEventListener('abort', left);
      const late = () => over.abort(new Error('It took too long.'));
      let cancel = clock.after((wanted.isLong ? headSeconds : (wanted.seconds ?? seconds)) * 1000, late);
      const ended = Promise.withResolvers<void>();
      const free = () => {
        cancel();
        wanted.signal.removeEventListener('abort', left);
        ended.resolve();
      };
      try {
        const line = wanted.isLong ? 'long' : wanted.seconds === undefined ? 'short' : 'patient';
        await entered(lines[line], wanted.owner, over.signal, ended.promise);
        const response = await ask(wanted, over.signal, free);
        if (response.ok && !wanted.isLong) return response;
        cancel();
        if (!response.ok) cancel = clock.after(refusalMilliseconds, late);
        return response;
      } catch (error) {
        free();
        wanted.signal.throwIfAborted();
        throw error instanceof QueueFull ? error : new NotFetched(error);
      }
    },
  };
}

/** Takes a turn, which lasts until `ended`. */
async function entered(line: FairSemaphore, owner: string, signal: AbortSignal, ended: Promise<void>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  line
    .run({ owner, size: 1, signal }, () => {
      resolve();
      return ended;
    })
    .catch(reject);
  await promise;
}

/** @param over called once, when the body has ended, broken or been left */
function standardResponse(answer: UpstreamResponse, maxBytes: number, over: () => void): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) if (value !== undefined) headers.set(name, [value].flat().join(', '));
  const head = { status: answer.status, headers };
  if (bodiless.has(answer.status)) {
    answer.leave();
    over();
    return new Response(null, head);
  }
  let size = 0;
  const pieces = async function* (): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    try {
      for (let bytes = await answer.take(); bytes; bytes = await answer.take()) {
        size += bytes.length;
        if (size > maxBytes) throw new Error('It is too large.');
        for (let at = 0; at < bytes.length; at += turnBytes) {
          yield new Uint8Array(bytes.subarray(at, at + turnBytes));
          await nextTurn();
        }
      }
    } catch (error) {
      throw new NotFetched(error);
    } finally {
      answer.leave();
      over();
    }
  };
  const reading = pieces();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const next = await reading.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        answer.leave(); // wakes what waits for bytes
        over();
        await reading.return(undefined).catch(() => {});
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, head);
}
