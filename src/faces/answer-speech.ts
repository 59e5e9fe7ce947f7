import type { Speech } from '#http/noun-route';
import type { Asked } from '#http/route';
import { answerHeaders } from './answer-headers.ts';
import { accompanied, contextOf, type GeneratingDeps } from './answer.ts';
import { inOwnWords } from './own-words.ts';

/** Speaks a text on the open connection: the sound goes out as it comes. @throws Fault; behind the first of the sound the connection is cut */
export async function answerSpeech(deps: Pick<GeneratingDeps, 'limits'>, asked: Asked, face: string, { call, speak, fieldNames, app }: Speech): Promise<void> {
  const { exchange } = asked;
  const context = contextOf(asked, face, app, []);
  await accompanied(deps, exchange, { call: { model: call.model, stream: call.asEvents === true }, context }, async () => {
    try {
      await speak(
        call,
        {
          open: ({ contentType, ...head }) =>
            exchange.open(200, ['content-type', contentType, ...answerHeaders(context.progress, { type: 'started', ...head })]),
          write: (bytes) => exchange.write(bytes),
          drained: () => exchange.drained(),
        },
        context,
      );
    } catch (error) {
      throw inOwnWords(error, fieldNames);
    }
    exchange.end();
  });
}
