import { faultOf, type Fault } from '#core/fault';
import type { Exchange } from '#http/exchange';

/**
 * Runs what forwards an answer as it comes. Once the head is out, events that fail end with the frame of a fault, and any other answer is cut.
 * @param run is given what notes the content type of the answer
 * @throws Fault, also where the client was told in the stream itself
 */
export async function forwarded(
  exchange: Exchange,
  faultFrame: ((fault: Fault) => string) | undefined,
  run: (opens: (contentType: string) => void) => Promise<void>,
): Promise<void> {
  let isEvents = false;
  try {
    await run((contentType) => (isEvents = /^text\/event-stream\b/i.test(contentType)));
  } catch (error) {
    if (faultFrame && isEvents && exchange.opened && !exchange.left) {
      exchange.write(Buffer.from(`\n\n${faultFrame(faultOf(error))}`)); // the provider may have broken off within a frame
      exchange.end();
    }
    throw error;
  }
  exchange.end();
}
