import { isBase64 } from '#kit/text/base64';
import type { GenerateCall } from '#core/call';
import type { MediaPart, Part } from '#core/conversation';
import { Fault } from '#core/fault';

/**
 * Reads through the media of a conversation, piece by piece: what is no base64 is refused, as providers do.
 * @throws Fault `invalid` for the part, and the reason of the signal
 */
export async function checkMedia({ turns }: Pick<GenerateCall, 'turns'>, signal: AbortSignal): Promise<void> {
  for (const [at, { parts }] of turns.entries())
    for (const [place, part] of parts.entries())
      for (const media of mediaIn(part)) {
        if (await isBase64(contentOf(media.base64!), signal)) continue;
        const field = `turns[${at}].parts[${place}]`;
        throw new Fault('invalid', `${field}: the content of the ${media.kind} must be base64.`, { field });
      }
}

function mediaIn(part: Part): readonly MediaPart[] {
  const parts: readonly Part[] = part.type === 'tool-result' ? part.parts : [part];
  return parts.filter((one) => one.type === 'media' && one.base64 !== undefined) as readonly MediaPart[];
}

/** Some clients send a data URL in the place of its content. */
const contentOf = (base64: string): string => (/^data:/i.test(base64) ? base64.slice(base64.indexOf(',') + 1) : base64);
