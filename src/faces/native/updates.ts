import { eventText, type Updates } from '#http/noun-route';
import type { Exchange } from '#http/exchange';
import { sendPieces } from '../plain-route.ts';
import { delimited } from './conversation.ts';

/** Sends updates as they come: as server-sent events, or as objects with delimiters between them where the client accepts plain text and no events. */
export function answerUpdates(exchange: Exchange, { updates }: Updates): Promise<void> {
  const accepts = (exchange.header('accept') ?? '').slice(0, 1000);
  const isPlain = /\btext\/plain\b/i.test(accepts) && !/\btext\/event-stream\b/i.test(accepts);
  const plain = delimited();
  const framed = isPlain ? ({ value }: { readonly value: object }) => plain.framed(value) : eventText;
  const contentType = isPlain ? 'text/plain; charset=utf-8' : 'text/event-stream; charset=utf-8';
  return sendPieces(exchange, pieces(updates, framed), ['content-type', contentType, 'x-accel-buffering', 'no']);
}

async function* pieces<One>(updates: AsyncIterable<One>, framed: (update: One) => string): AsyncGenerator<string> {
  for await (const update of updates) yield framed(update);
}
