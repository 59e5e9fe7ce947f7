import { fieldIn } from '#dialects/gemini/client-fields';
import { arrayFraming, eventFraming } from '#dialects/gemini/framing';
import { gemini } from '#dialects/gemini/index';
import { answerCall, contextOf, unlabelled, type GeneratingDeps, type Understood } from '../answer.ts';
import type { Asked } from '#http/route';
import { isWebSearch } from '#core/conversation';
import { fallingBack } from './tier-fallback.ts';

/**
 * `generateContent` and `streamGenerateContent`.
 *
 * @param namesFor the names to ask for, in turn, where this one is wanted; throws a Fault
 */
export async function generateContent(
  parts: GeneratingDeps,
  asked: Asked,
  { model, stream }: { readonly model: string; readonly stream: boolean },
  namesFor: (model: string) => readonly [string, ...string[]],
): Promise<void> {
  const understanding = understood(asked, model, stream);
  const generate = fallingBack(parts.generate, namesFor(model));
  await answerCall({ ...parts, generate }, asked.exchange, understanding);
}

function understood(asked: Asked, model: string, stream: boolean): Understood {
  const { exchange, json } = asked;
  const { app, body } = unlabelled(json);
  const framing = wantsEvents(exchange.url) ? eventFraming() : arrayFraming();
  const call = gemini.decodeRequest(body, { model, stream });
  const answer = { id: exchange.id.slice(4), framing, cites: call.tools.some(isWebSearch) };
  return {
    call,
    context: contextOf(asked, 'gencompat', app, []),
    words: {
      whole: (result) => gemini.encodeResult(result, answer),
      frames: () => gemini.encoder(answer),
      framing,
      passedEnd: '',
      fault: (fault) => framing.fault(fault),
      fieldOf: (field) => fieldIn(body, field),
    },
  };
}

/** `?alt=sse` */
function wantsEvents(url: string): boolean {
  const at = url.indexOf('?');
  return at >= 0 && new URLSearchParams(url.slice(at)).get('alt')?.toLowerCase() === 'sse';
}
