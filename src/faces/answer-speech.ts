import type { Fault } from '#core/fault';
import type { BookedFace } from '#core/usage-row';
import type { Speech } from '#http/noun-route';
import type { Asked } from '#http/route';
import { answerHeaders } from './answer-headers.ts';
import { forwarded } from './forwarded.ts';
import { accompanied, contextOf, type GeneratingDeps } from './answer.ts';
import { inOwnWords } from './own-words.ts';

interface SpeechAnswering extends Pick<GeneratingDeps, 'limits'> {
  /** The last frame of events that failed; of faces that speak in events. */
  readonly faultFrame?: (fault: Fault) => string;
}

/** Speaks a text on the open connection: the sound goes out as it comes. @throws Fault; behind the first of the sound the connection is cut */
export async function answerSpeech(deps: SpeechAnswering, asked: Asked, face: BookedFace, { call, speak, fieldNames, app }: Speech): Promise<void> {
  const { exchange } = asked;
  const context = contextOf(asked, face, app, []);
  const send = async (opens: (contentType: string) => void) => {
    try {
      await speak(
        call,
        {
          open({ contentType, ...head }) {
            opens(contentType);
            exchange.open(200, ['content-type', contentType, ...answerHeaders(context.progress, { type: 'started', ...head })]);
          },
          write: (bytes) => exchange.write(bytes),
          drained: () => exchange.drained(),
        },
        context,
      );
    } catch (error) {
      throw inOwnWords(error, fieldNames);
    }
  };
  await accompanied(deps, exchange, { call: { model: call.model, stream: call.asEvents === true }, context }, () => forwarded(exchange, deps.faultFrame, send));
}
