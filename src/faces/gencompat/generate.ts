import { decodeRequest } from '#dialects/gemini/decode-request';
import { encoder } from '#dialects/gemini/events';
import { fieldIn } from '#dialects/gemini/client-fields';
import { arrayFraming, eventFraming } from '#dialects/gemini/framing';
import { encodeResult } from '#dialects/gemini/result';
import { answerCall, contextOf, unlabelled, type GeneratingDeps } from '../answer.ts';
import type { Asked } from '#http/route';
import { isWebSearch } from '#core/conversation';

/**
 * `generateContent` and `streamGenerateContent`.
 *
 * @param namesFor the names of the models to ask, in turn, for a name that a client writes; throws a Fault
 */
export async function generateContent(
  parts: GeneratingDeps,
  asked: Asked,
  { model, stream }: { readonly model: string; readonly stream: boolean },
  namesFor: (model: string) => readonly [string, ...string[]],
): Promise<void> {
  const { exchange, json } = asked;
  const { app, body } = unlabelled(json);
  const id = exchange.id.slice(4);
  const framing = wantsEvents(exchange.url) ? eventFraming() : arrayFraming();
  const call = decodeRequest(body, { model, stream });
  await answerCall(parts, exchange, {
    call,
    context: { ...contextOf(asked, 'gencompat', app, []), tier: namesFor(model) },
    words: {
      whole: (result) => encodeResult(result, id),
      frames: () => encoder(id, framing, call.tools.some(isWebSearch)),
      framing,
      passedEnd: '',
      fault: (fault) => framing.fault(fault),
      fieldOf: (field) => fieldIn(body, field),
    },
  });
}

/** `?alt=sse` */
function wantsEvents(url: string): boolean {
  const at = url.indexOf('?');
  return at >= 0 && new URLSearchParams(url.slice(at)).get('alt')?.toLowerCase() === 'sse';
}
