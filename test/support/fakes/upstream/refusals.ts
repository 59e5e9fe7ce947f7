/** Refusals: statuses with bodies as the wire's real provider words them, and answers that are none. */
import { whole, type HttpAnswer } from './answer.ts';
import type { Behaviour, Exchange } from './behaviour.ts';
import { altered, ok } from './good.ts';
import { secretWord } from './secret-word.ts';
import type { Words } from './wire.ts';

/** Any status, worded as the provider does. */
export const refusal = (status: number, words: Words = {}, headers: HttpAnswer['headers'] = {}): Behaviour => ({
  name: `refusal ${status}`,
  answer: ({ wire }) => json(status, wire.fault(status, words), headers),
});

export const badRequest = (words?: Words): Behaviour => refusal(400, words);
export const badKey = (): Behaviour => refusal(401);
export const unpaid = (): Behaviour => refusal(402);
export const forbidden = (): Behaviour => refusal(403);
export const unprocessable = (): Behaviour => refusal(422);
export const failing = (status: 500 | 502 | 503 | 504 | 529 = 500): Behaviour => refusal(status);

/** 404: the address, or with `model` the model that was asked for. */
export const notFound = (what: 'address' | 'model' = 'address'): Behaviour => ({
  name: `notFound ${what}`,
  answer: ({ wire, asked }) => json(404, wire.fault(404, what === 'model' ? { model: asked.model } : {})),
});

/** 429. `retryAfter` goes into the header as it is, a Date as an HTTP date. */
export const tooMany = ({
  retryAfter,
  retryAfterMs,
  ...words
}: { retryAfter?: number | string | Date; retryAfterMs?: number | string } & Words = {}): Behaviour =>
  refusal(429, words, {
    ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter instanceof Date ? retryAfter.toUTCString() : String(retryAfter) }),
    ...(retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs) }),
  });

/** A refusal as an event of a 200 stream, after this many good events; then the stream ends. What is not streamed is a 200 with the refusal as its body. */
export const errorEvent = ({
  afterEvents = 0,
  status = 503,
  done = false,
  ...words
}: { afterEvents?: number; status?: number; done?: boolean } & Words = {}): Behaviour =>
  altered('errorEvent', ok(), (answer, { wire, asked }) => {
    if (!asked.stream) return json(200, wire.fault(status, words));
    const frames = [...some(answer, afterEvents), `${wire.faultFrame(status, words)}\n\n`];
    return { ...answer, body: done && wire.last ? [...frames, `${wire.last}\n\n`] : frames, framing: 'chunked' };
  });

/** The same without any framing: bare JSON in the middle of the stream. */
export const rawJsonTail = ({ afterEvents = 1, status = 503 } = {}): Behaviour =>
  altered('rawJsonTail', ok(), (answer, { wire }) => ({
    ...answer,
    body: [...some(answer, afterEvents), JSON.stringify(wire.fault(status, {}), undefined, 2)],
    framing: 'chunked',
  }));

/** A 200 with this body under this type, whatever was asked. */
export const body = (text: string, contentType = 'application/json'): Behaviour => ({
  name: `body ${text.slice(0, 20)}`,
  answer: () => whole(200, text, contentType ? { 'content-type': contentType } : {}),
});

export const html = (): Behaviour => body(`<!doctype html><html><body><h1>502 Bad Gateway</h1>${secretWord}</body></html>`, 'text/html');
export const empty = (): Behaviour => body('');
export const jsonNull = (): Behaviour => body('null');
export const array = (): Behaviour => body('[{"choices":[]}]');
export const malformed = (): Behaviour => body('{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"half');

/** A good answer under another type; none when empty. */
export const contentType = (type: string): Behaviour =>
  altered('contentType', ok(), (answer) => {
    const { 'content-type': _, ...headers } = answer.headers;
    return { ...answer, headers: type ? { ...headers, 'content-type': type } : headers };
  });

export const noContent = (): Behaviour => ({ name: 'noContent', answer: () => ({ status: 204, headers: {}, body: [], framing: 'chunked', end: 'finish' }) });
export const notModified = (): Behaviour => ({
  name: 'notModified',
  answer: () => ({ status: 304, headers: {}, body: [], framing: 'chunked', end: 'finish' }),
});
export const redirect = (to: string, status: 301 | 302 | 303 | 307 | 308 = 302): Behaviour => ({
  name: 'redirect',
  answer: () => whole(status, '', { location: to }),
});

/** A good answer under another status. */
export const withStatus = (status: number): Behaviour => altered(`withStatus ${status}`, ok(), (answer) => ({ ...answer, status }));

/** 1xx answers before the good one. */
export const informational = (...statuses: number[]): Behaviour =>
  altered('informational', ok(), (answer) => ({
    ...answer,
    prelude: statuses.map((status) => `HTTP/1.1 ${status} Early\r\nlink: </x>; rel=preload\r\n\r\n`).join(''),
  }));

/** Answers before the body is read, and closes. */
export const early = (status = 413): Behaviour => ({
  name: 'early',
  early: true,
  answer: ({ wire }: Exchange) => ({ ...json(status, wire.fault(status, {}), { connection: 'close' }), end: 'fin' }),
});

/** A good answer with headers that a provider should keep to itself. */
export const leakyHeaders = (): Behaviour =>
  withHeaders({
    'set-cookie': ['session=upstream; Path=/', '__cf_bm=upstream'],
    server: secretWord,
    via: `1.1 ${secretWord}`,
    'x-internal-node': secretWord,
    'x-powered-by': secretWord,
    'openai-organization': secretWord,
    'x-request-id': 'req_of_the_upstream',
    'access-control-allow-origin': '*',
    'x-ratelimit-remaining-requests': '1',
    'strict-transport-security': 'max-age=1',
    'content-security-policy': 'default-src *',
    'alt-svc': 'h3=":443"',
  });

export const withHeaders = (headers: HttpAnswer['headers'], base: Behaviour = ok()): Behaviour =>
  altered('withHeaders', base, (answer) => ({ ...answer, headers: { ...answer.headers, ...headers } }));

/** A good answer under a header of this many bytes. */
export const giantHeaders = (bytes = 1 << 20): Behaviour => withHeaders({ 'x-giant': 'a'.repeat(bytes) });

const json = (status: number, value: object, headers: HttpAnswer['headers'] = {}) =>
  whole(status, JSON.stringify(value), { 'content-type': 'application/json', ...headers });

/** The first events of a stream; of a whole answer nothing, so that what follows stands alone. */
function some(answer: HttpAnswer, events: number) {
  const all = [...(answer.body as Iterable<string>)];
  return all.length > 1 ? all.slice(0, events) : [];
}
