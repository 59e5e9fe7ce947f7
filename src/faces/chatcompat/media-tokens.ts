/* What media may cost at most, in tokens, by what their requests say: so much is set aside of a plan before a provider is asked. */
import type { RawRequest } from '#core/raw-request';

type Most = RawRequest['most'];

/** Of a picture of the largest usual size, by its quality; any other word may mean the best. https://platform.openai.com/docs/guides/image-generation#cost-and-latency */
const pictureTokens: ReadonlyMap<unknown, number> = new Map([
  ['low', 408],
  ['medium', 1584],
]);
const bestPictureTokens = 6240;
/** Of each picture that is shown before it is finished, at most three. */
const partialTokens = 100;

/** A minute of a recording has about this many tokens, and what is said in it fewer. */
const recordingTokens = 1000;
/** Bytes for a second of speech, where it is packed tightly: 16 kbit/s. */
const bytesPerSecond = 2000;
/** Seconds: models that count in tokens take no longer recordings. */
const longestRecording = 1500;

export function mostOfPictures({ n, quality, partial_images: partial }: Readonly<Record<string, unknown>>): Most {
  const each = (pictureTokens.get(quality) ?? bestPictureTokens) + partialTokens * (typeof partial === 'number' ? Math.min(3, Math.max(0, partial)) : 0);
  return { input: 0, output: each * (typeof n === 'number' ? n : 1) };
}

/** @param bytes of the file: nobody here knows how long it is */
export function mostOfRecording(bytes: number): Most {
  const minutes = Math.max(1, Math.ceil(Math.min(bytes / bytesPerSecond, longestRecording) / 60));
  return { input: minutes * recordingTokens, output: minutes * recordingTokens };
}
