import type { Clock } from '#kit/async/clock';
import { scan } from '#kit/json/scan';
import { spokenPieces } from '#kit/text/spoken-pieces';
import type { TargetContext } from '#core/context';
import type { Events, GenerateEvent, Usage } from '#core/event';
import { countsOfSpeech, type SoundSink, type SpeakCall } from '#core/speak';
import { sumOf } from '#core/usage';
import type { OperationEndpoint } from '../shared/operation.ts';
import { sendRaw, speech } from './send-raw.ts';

/** The voices of OpenAI, the first for whoever asks for none: https://platform.openai.com/docs/guides/text-to-speech#voice-options */
export const voices = ['alloy', 'ash', 'ballad', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer'] as const;

/** Characters of a text that OpenAI speaks at once. */
const mostCharacters = 4096;

/** Speaks a text, a longer one in pieces that are joined, as MP3 can be. The client's own bytes are forwarded with the model name replaced. @throws Fault */
export async function* speak(endpoint: OperationEndpoint, clock: Clock, call: SpeakCall, sound: SoundSink, context: TargetContext): AsyncGenerator<Events> {
  let usage: Usage | undefined;
  let before = ''; // what was spoken
  const pieces = piecesOf(call, endpoint.model);
  for (const [at, { text, bytes, places }] of pieces.entries()) {
    let sent = 0;
    let length: number | undefined;
    const piece = {
      operation: speech,
      body: { type: 'json' as const, bytes, places },
      stream: call.asEvents === true,
      saysText: false,
      open(contentType: string, ignored: readonly string[], announced?: number) {
        length = announced;
        if (at === 0) sound.open({ contentType, model: endpoint.model, ignored });
      },
      write(some: Uint8Array) {
        sent += some.length;
        return sound.write(some);
      },
      drained: () => sound.drained(),
    };
    try {
      for await (const events of sendRaw(endpoint, clock, piece, context)) {
        const kept: GenerateEvent[] = [];
        for (const event of events) {
          if (event.type === 'usage') usage = usage ? sumOf(usage, event.usage) : event.usage;
          else if (at === 0 || event.type !== 'started') kept.push(event);
        }
        if (kept.length > 0) yield kept;
      }
    } catch (error) {
      // What was not spoken is not paid for, as far as that is known.
      const share = sent === 0 ? 0 : Math.min(1, sent / (length ?? sent));
      const spoken = before + text.slice(0, Math.ceil(text.length * share));
      if (spoken !== '' && !context.signal.aborted) yield [{ type: 'passed', tokens: 0, counts: countsOfSpeech(spoken) }];
      if (usage) yield [{ type: 'usage', usage: at === pieces.length - 1 ? usage : { ...usage, source: 'partial' } }];
      throw error;
    }
    before += text;
  }
  if (usage) yield [{ type: 'usage', usage }];
}

interface Piece {
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly places: readonly number[];
}

function piecesOf(call: SpeakCall, model: string): readonly Piece[] {
  const { passthrough, text } = call;
  if (passthrough) return [{ text, ...passthrough }];
  return Array.from(spokenPieces(text, { most: mostCharacters, joined: true }), (piece) => {
    const bytes = Buffer.from(JSON.stringify(bodyOf(call, piece, model)));
    return { text: piece, bytes, places: scan(bytes) };
  });
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
