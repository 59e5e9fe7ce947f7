import { faultInAnswer } from '#dialects/openai/faults';
import { estimatedTokensOf } from '#kit/tokens/estimate';
import { Fault } from '#core/fault';
import { isObject, textOf } from '#core/json';
import type { Counts } from '#core/price';
import type { RawRequest } from '#core/raw-request';
import { jsonOf } from '../shared/read-answer.ts';

/**
 * What the answers of forwarded requests have to be, so that an error page or an empty object is a failure of the provider, and not an answer. Vendors differ:
 * no more is required than what every client of these operations reads. https://platform.openai.com/docs/api-reference
 */

/** What is needed of a request in order to judge its answer. */
type Asked = Pick<RawRequest, 'operation' | 'body'>;

/** Whole answers in JSON by their operations. */
const wholes: Readonly<Record<string, Whole>> = {
  'images/generations': {
    name: 'a list of pictures',
    is: ({ data }) => Array.isArray(data) && data.some(isPicture) && data.every((one: unknown) => isPicture(one) || isFailure(one)),
    counts: ({ data }) => ({ pictures: (data as readonly unknown[]).filter(isPicture).length }),
  },
  moderations: { name: 'a list of moderation results', is: ({ results }) => Array.isArray(results), counts: () => ({}) },
  'audio/transcriptions': { name: 'a transcript', is: ({ text }) => typeof text === 'string', counts: ({ duration }) => recordedSeconds(duration) },
};

interface Whole {
  readonly name: string;
  /** Whether an object is one. */
  readonly is: (answer: Answer) => boolean;
  /** What one says of the amounts that are not counted in tokens. */
  readonly counts: (answer: Answer) => Counts;
}

type Answer = Readonly<Record<string, unknown>>;

const isPicture = (one: unknown): boolean => isObject(one) && (textOf(one['url']) !== '' || textOf(one['b64_json']) !== '');
/** Some vendors list the pictures that failed among the others: https://www.volcengine.com/docs/82379/1541523 */
const isFailure = (one: unknown): boolean => isObject(one) && isObject(one['error']);

/** @param seconds of a recording, as a provider counts them */
export const recordedSeconds = (seconds: unknown): Counts =>
  typeof seconds === 'number' && seconds > 0 && seconds <= longest ? { heardSeconds: seconds } : {};

/** Plausibility limit in seconds: a day of sound, which no request can contain. */
const longest = 86_400;

/** What a whole answer says of its cost. */
interface Judged {
  /** Estimated tokens of text; of a transcript in JSON, of its `text` alone. */
  readonly textTokens: number;
  /** The amounts that are not counted in tokens. */
  readonly counts: Counts;
}

/** Judges a whole answer. @throws Fault `upstream-failed` where it is none, or the fault that its error means */
export async function checkWhole({ operation, body }: Asked, contentType: string, bytes: Uint8Array): Promise<Judged> {
  const { name, is, counts } = wholes[operation]!;
  const mime = mimeOf(contentType);
  if (isForText(body) && !isJson(mime)) {
    if (bytes.length === 0 || isPage(mime)) throw not(name);
    return { textTokens: estimatedTokensOf([Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')]), counts: {} };
  }
  const answer = await jsonOf(bytes);
  if (!isObject(answer)) throw not(name);
  if (!is(answer)) throw faultInAnswer(answer) ?? not(name);
  return { textTokens: estimatedTokensOf([textOf(answer['text'])]), counts: counts(answer) };
}

/** Asks a transcription for a form other than JSON: `text`, `srt`, `vtt`. Some servers answer in JSON all the same. */
function isForText(body: RawRequest['body']): boolean {
  const format = body.type === 'form' ? body.form.get('response_format') : null;
  return typeof format === 'string' && format !== '' && !format.endsWith('json');
}

/** Bytes at the beginning of an answer by which it is judged. */
export const mostJudged = 16;

/** Judges the beginning of an answer that is forwarded as it comes: events, or a sound. @throws Fault `upstream-failed` where it is neither */
export function checkBeginning(contentType: string, first: Uint8Array): void {
  const mime = mimeOf(contentType);
  const text = Buffer.from(first.buffer, first.byteOffset, Math.min(first.length, mostJudged)).toString('latin1');
  if (text === '') throw not('an answer');
  if (isEvents(contentType)) {
    if (!/^(?:ï»¿)?\s*(?:(?:data|event|id|retry)?:|$)/.test(text)) throw not('a stream of events');
  } else if (mayBeText(mime) ? !sound.test(text) : refusal.test(text)) throw not('a sound');
}

/** The first bytes of MP3, AAC, WAV, AIFF, Ogg, FLAC, MP4 and WebM. */
const sound = /^(?:ID3|\xff[\xe0-\xff]|RIFF|FORM|OggS|fLaC|.{4}ftyp|.E\xdf\xa3)/s;

/** An error in the place of a sound, whatever its type says. */
const refusal = /^\s*\{\s*"(?:error|detail|message)"/;

export const isEvents = (contentType: string): boolean => mimeOf(contentType) === 'text/event-stream';

const mimeOf = (contentType: string): string => contentType.split(';', 1)[0]!.trim().toLowerCase();
const isPage = (mime: string): boolean => mime === 'text/html' || mime === 'application/xhtml+xml';
const isJson = (mime: string): boolean => mime === 'application/json' || mime.endsWith('+json');

const mayBeText = (mime: string): boolean => mime.startsWith('text/') || isPage(mime) || isJson(mime);

const not = (what: string) => new Fault('upstream-failed', `The provider sent something that is not ${what}.`, { elsewhere: true });
