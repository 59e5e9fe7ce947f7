/** Why a document cannot be converted. */
export type RefusalReason =
  /** No type that is read. */
  | 'unknown-type'
  | 'encrypted'
  | 'corrupt'
  | 'empty'
  /** It opens to more than is read of one document, takes too long, or needs too much memory. */
  | 'too-much'
  /** Its text is longer than texts may be. */
  | 'too-long'
  /** Too many others wait. */
  | 'busy';

/** A document that cannot be converted. The message is for whoever sent it. */
export class ConversionRefused extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ConversionRefused';
    this.reason = reason;
  }
}

const reasons: ReadonlySet<string> = new Set<RefusalReason>(['unknown-type', 'encrypted', 'corrupt', 'empty', 'too-much', 'too-long', 'busy']);

export const isRefusalReason = (text: unknown): text is RefusalReason => typeof text === 'string' && reasons.has(text);

export const corrupt = (what: string, cause?: unknown) => new ConversionRefused('corrupt', `The file is corrupt: ${what}.`, cause);
export const empty = (what = 'there is no text in it') => new ConversionRefused('empty', `The file is empty: ${what}.`);
export const encrypted = () => new ConversionRefused('encrypted', 'The file is encrypted: send it without a password.');
export const tooMuch = (what: string) => new ConversionRefused('too-much', `The file cannot be read: ${what}.`);
