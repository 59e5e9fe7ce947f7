import type { Clock } from '#kit/async/clock';
import { scan } from '#kit/json/scan';
import { spokenPieces } from '#kit/text/spoken-pieces';
import type { TargetContext } from '#core/context';
import type { Events, GenerateEvent, Usage } from '#core/event';
import type { SoundSink, SpeakCall } from '#core/speak';
import { sumOf } from '#core/usage';
import type { OperationEndpoint } from '../shared/operation.ts';
import { sendRaw } from './send-raw.ts';

/** The voices of OpenAI, the first for whoever asks for none: https://platform.openai.com/docs/guides/text-to-speech#voice-options */
export const voices = ['alloy', 'ash', 'ballad', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer'] as const;

/** Characters of a text that OpenAI speaks at once. */
const mostCharacters = 4096;

/** Speaks a text, a longer one in pieces that are joined, as MP3 can be. The client's own bytes are forwarded with the model name replaced. @throws Fault */
export async function* speak(endpoint: OperationEndpoint, clock: Clock, call: SpeakCall, sound: SoundSink, context: TargetContext): AsyncGenerator<Events> {
  const { passthrough, text } = call;
  const bodies = passthrough
    ? [passthrough]
    : Array.from(spokenPieces(text, { most: mostCharacters, joined: true }), (piece) => {
        const bytes = Buffer.from(JSON.stringify(bodyOf(call, piece, endpoint.model)));
        return { bytes, places: scan(bytes) };
      });
  let usage: Usage | undefined;
  for (const [at, { bytes, places }] of bodies.entries()) {
    const piece = {
      operation: 'audio/speech',
      body: { type: 'json' as const, bytes, places },
      saysText: false,
      open: (contentType: string, ignored: readonly string[]) => at === 0 && sound.open({ contentType, model: endpoint.model, ignored }),
      write: (some: Uint8Array) => sound.write(some),
      drained: () => sound.drained(),
    };
    for await (const events of sendRaw(endpoint, clock, piece, context)) {
      const kept: GenerateEvent[] = [];
      for (const event of events) {
        if (event.type === 'usage') usage = usage ? sumOf(usage, event.usage) : event.usage;
        else if (at === 0 || event.type !== 'started') kept.push(event);
      }
      if (kept.length > 0) yield kept;
    }
  }
  if (usage) yield [{ type: 'usage', usage }];
}

function bodyOf({ voice = voices[0], instructions, speed, format, asEvents }: SpeakCall, input: string, model: string) {
  return {
    model,
    input,
    voice,
    ...(instructions === undefined ? {} : { instructions }),
    ...(speed === undefined ? {} : { speed }),
    ...(format === undefined ? {} : { response_format: format }),
    ...(asEvents ? { stream_format: 'sse' } : {}),
  };
}
