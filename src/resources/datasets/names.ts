import { Fault, invalid, type FaultCode } from '#core/fault';

/** Names that mean something else where datasets are named. */
const reserved = new Set(['all', 'none', 'undefined', 'null']);
const fewest = 4;
const most = 99;

/** What would break a line or change its direction, and halves of characters. */
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const unfit = /[\u0000-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069\uFFFE\uFFFF]|\p{Cs}/u;

const visible = /[^\s\p{C}]/u;

/** A dataset's name as its owner gives it, without white space around it. @throws Fault `invalid` */
export function shortName(text: string, field: string): string {
  const name = text.trim();
  const length = Array.from(name.slice(0, 2 * most + 2)).length;
  if (length < fewest || length > most) throw invalid(field, `must have ${fewest} to ${most} characters`);
  if (reserved.has(name.toLowerCase())) throw invalid(field, `must not be ${name}, which means something else`);
  if (unfit.test(name)) throw invalid(field, 'must not have control characters');
  if (!visible.test(name)) throw invalid(field, 'must have characters that can be seen');
  return name;
}

/** The name by which everybody knows a user's dataset. */
export const fullNameOf = (ownerId: number, name: string): string => `user_custom_${ownerId}_${name}_content`;

export type Classification = 'Unclassified' | 'CUI';

/** A name with `cui` in it is of a classified dataset, whatever is said. */
export const classificationOf = (name: string, wanted: string | null | undefined): Classification =>
  wanted === 'CUI' || /cui/i.test(name) ? 'CUI' : 'Unclassified';

const longestFilename = 255;

/** The last part of a path, as it is shown; nothing is ever opened by this name. @throws Fault `invalid` for one that is empty or too long */
export function filenameOf(text: string, field: string): string {
  const name = text.replaceAll('\\', '/').split('/').at(-1)!.trim();
  if (name === '' || name === '.' || name === '..') throw invalid(field, 'must be the name of a file');
  if (Array.from(name.slice(0, 2 * longestFilename + 2)).length > longestFilename) throw invalid(field, `must have at most ${longestFilename} characters`);
  if (unfit.test(name)) throw invalid(field, 'must not have control characters');
  return name;
}

const ofFiles: ReadonlySet<FaultCode> = new Set<FaultCode>(['invalid', 'too-large', 'unsupported-type', 'unprocessable']);

/** What is wrong with a file that was sent, said of that file. @param filename as it was sent; may be anything */
export function faultOfFile(error: unknown, filename: string): unknown {
  if (!(error instanceof Fault) || !ofFiles.has(error.code)) return error;
  return new Fault(error.code, `file${filename === '' ? '' : ` (${filename.slice(0, 200).toWellFormed()})`}: ${error.message}`, {
    ...error.details,
    field: 'file',
  });
}
