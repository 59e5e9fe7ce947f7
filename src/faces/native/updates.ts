import { eventText, type Framing, type Updates } from '#http/noun-route';
import type { Exchange } from '#http/exchange';
import { sendPieces } from '../plain-route.ts';
import { delimited } from './conversation.ts';

/** What a client asks for by its `Accept`; undefined: it names neither. */
export function framingFor(exchange: Exchange): Framing | undefined {
  const accepts = (exchange.header('accept') ?? '').slice(0, 1000);
  if (/\btext\/event-stream\b/i.test(accepts)) return 'events';
  return /\btext\/plain\b/i.test(accepts) ? 'text' : undefined;
}

/** Sends updates as they come: as server-sent events, or as objects with delimiters between them. */
export function answerUpdates(exchange: Exchange, { updates, usual }: Updates): Promise<void> {
  const isText = (framingFor(exchange) ?? usual) === 'text';
  const plain = delimited();
  const framed = isText ? ({ value }: { readonly value: object }) => plain.framed(value) : eventText;
  const contentType = isText ? 'text/plain; charset=utf-8' : 'text/event-stream; charset=utf-8';
  return sendPieces(exchange, pieces(updates, framed), ['content-type', contentType, 'x-accel-buffering', 'no']);
}

async function* pieces<One>(updates: AsyncIterable<One>, framed: (update: One) => string): AsyncGenerator<string> {
  for await (const update of updates) yield framed(update);
}
