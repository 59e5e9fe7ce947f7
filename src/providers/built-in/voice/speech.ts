import { estimatedTokensOf } from '#kit/tokens/estimate';
import { normalized } from '#kit/text/normalized';
import { QueueFull, type Job } from '#kit/async/fair-semaphore';
import { spokenPieces } from '#kit/text/spoken-pieces';
import type { Tokens } from '#kit/tokens/index';
import type { TargetContext } from '#core/context';
import type { Events, Usage } from '#core/event';
import { Fault, queueFull } from '#core/fault';
import type { SoundSink, SpeakCall } from '#core/speak';
import type { Target } from '#core/target';
import type { Voice } from './voice.ts';

export interface SpeechDeps {
  readonly voice: Voice;
  readonly tokens: () => Promise<Tokens>;
}

export const speechName = 'built-in-speech';

/** Two women and a man; the first is the one that speaks where none of them is asked for. */
export const voices = ['slt', 'awb', 'rms'] as const;

/** Plan tokens for a second of sound. */
const tokensPerSecond = 20;

/** Weight of a piece, and of the first one, after which the sound begins. */
const [mostWeight, firstWeight] = [240, 60];

/**
 * Speaks English with the packaged voices, sentence by sentence, as a WAV file of 16 kHz: of a text with several sentences, one of unknown length.
 * @throws Fault `invalid` for a text without a word that can be spoken, and for server-sent events
 */
export function speech({ voice, tokens }: SpeechDeps): NonNullable<Target['speak']> {
  return async function* (call: SpeakCall, sound: SoundSink, { caller, signal, strict }: TargetContext): AsyncGenerator<Events> {
    if (call.asEvents) throw new Fault('invalid', `stream_format must be audio: ${speechName} has no events.`, { field: 'stream_format' });
    const text = inAscii(call.text);
    if (!/[a-z0-9]/i.test(text)) throw new Fault('invalid', `input must have words in Latin letters: ${speechName} speaks English.`, { field: 'input' });
    const ignored = ignoredIn(call);
    if (strict && ignored[0] !== undefined)
      throw new Fault('invalid', `${speechName} does not support ${ignored[0]}.`, { field: ignored[0].split(':', 1)[0]! });
    const job = { owner: String(caller.userId), size: text.length, signal };
    const input = inputOf(call.text, tokens, job);
    input.catch(() => {}); // the caller may leave before it settles
    const chosen = voices.find((name) => name === call.voice) ?? voices[0];
    const stretch = 1 / Math.min(4, Math.max(0.25, call.speed ?? 1));
    const pieces = piecesOf(text);
    const [begun, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let seconds = 0;
    const all = voice.speaking(job, async (speak) => {
      let next = pieces.next();
      for (let isFirst = true; !next.done; isFirst = false) {
        const spoken = await speak({ text: next.value, voice: chosen, stretch });
        next = pieces.next();
        if (!spoken) throw new Fault('internal', 'The built-in voice could not speak this text.');
        const { rate, samples } = spoken;
        if (isFirst) {
          begun.resolve();
          await heard.promise; // what rules add to the head of the answer is known then
          signal.throwIfAborted();
          sound.open({ contentType: 'audio/wav', model: speechName, ignored });
          sound.write(wavHeader(rate, next.done ? samples.length : undefined));
        }
        seconds += samples.length / 2 / rate;
        if (!sound.write(samples)) await sound.drained();
      }
    });
    const counted = (): Events => [{ type: 'passed', tokens: 0, counts: { spokenSeconds: seconds } }];
    try {
      await Promise.race([begun.promise, all]);
      yield [{ type: 'started', model: speechName, ignored }, ...counted()];
      heard.resolve();
      await all;
    } catch (error) {
      if (seconds > 0) yield counted();
      throw error instanceof QueueFull ? queueFull(error) : error;
    } finally {
      heard.resolve();
    }
    yield [...counted(), { type: 'usage', usage: { ...(await input), output: Math.ceil(seconds * tokensPerSecond) } }];
  };
}

/** The tokens of the text: exact, unless too many of the caller's texts are being counted, since that must not fail an answer. */
async function inputOf(text: string, tokens: SpeechDeps['tokens'], job: Job): Promise<Pick<Usage, 'input' | 'source'>> {
  try {
    return { input: await (await tokens()).countAll([text], job), source: 'provider' };
  } catch (error) {
    if (!(error instanceof QueueFull)) throw error;
    return { input: estimatedTokensOf([text]), source: 'estimated' };
  }
}

function* piecesOf(text: string): Generator<string> {
  let rest = text;
  for (const piece of spokenPieces(text, { most: firstWeight, weight })) {
    rest = text.slice(piece.length);
    yield piece;
    break;
  }
  for (const piece of spokenPieces(rest, { most: mostWeight, weight })) if (/[a-z0-9]/i.test(piece)) yield piece;
}

/** About how long a character is spoken, beside a letter: digits and signs become words, and capitals are often spelled. */
function weight(character: string): number {
  if (/[a-z\s.,;:!?'"()-]/.test(character)) return 1;
  return /[A-Z]/.test(character) ? 3 : 6;
}

/** Letters without their accents, and typographic marks as plain ones; what is left has no sound here. */
function inAscii(text: string): string {
  return normalized(text, 'NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[^\x20-\x7e\n]/g, (character) => plain.get(character) ?? ' ')
    .trimStart();
}

const plain: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '‘': "'",
    '’': "'",
    '“': '"',
    '”': '"',
    '–': ', ',
    '—': ', ',
    '…': '.',
    ß: 'ss',
    æ: 'ae',
    Æ: 'Ae',
    ø: 'o',
    Ø: 'O',
    œ: 'oe',
    ł: 'l',
    Ł: 'L',
    đ: 'd',
    '€': ' euro ',
    '£': ' pounds ',
  }),
);

function ignoredIn({ voice, format, instructions, language, text }: SpeakCall): readonly string[] {
  return [
    ...(voice === undefined || voices.some((name) => name === voice) ? [] : [`voice: ${speechName} has the voices ${voices.join(', ')}`]),
    ...(format === undefined || format === 'wav' ? [] : [`response_format: ${speechName} makes WAV`]),
    ...(instructions === undefined ? [] : [`instructions: ${speechName} does not read them`]),
    ...(language === undefined || /^en\b/i.test(language) ? [] : [`language_code: ${speechName} speaks English`]),
    ...(/[^\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}]/u.test(text) ? [`input: ${speechName} speaks what is in Latin letters`] : []),
  ];
}

/** @param size bytes of the samples; absent: they end with the stream, as other servers of this interface say it too */
function wavHeader(rate: number, size?: number): Uint8Array {
  const header = Buffer.alloc(44);
  const unknown = 0xffff_ffff;
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(size === undefined ? unknown : size + 36, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(2 * rate, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(size ?? unknown, 40);
  return header;
}
