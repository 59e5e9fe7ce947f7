import { createHash } from 'node:crypto';
import { filenameOf } from '../names.ts';

const longestStem = 160;
/** Characters of a path that are made into a name: its end. */
const longestRead = 400;

/**
 * The name of something in a dataset, by its path in the source. A path of several parts becomes one name, with a digest of the whole path in it, so that two
 * of them never share a name.
 * @param extension what the name is to end with; absent: as the path does
 */
export function filenameFor(path: string, extension?: string): string {
  if (extension === undefined && !path.includes('/') && !path.includes('\\') && isName(path)) return path;
  const [, stem = path, own = ''] = /^(.+)(\.[a-z0-9]{1,10})$/is.exec(path) ?? [];
  const digest = createHash('sha256').update(path).digest('hex').slice(0, 8);
  const words = stem
    .slice(-longestRead)
    .toWellFormed()
    .replaceAll(/[^\p{L}\p{N}._~ ()+,=@&-]+/gu, '-')
    .replaceAll(/-{2,}/g, '-');
  return `${Array.from(trimmed(words)).slice(0, longestStem).join('') || 'file'}-${digest}${extension ?? own}`;
}

function isName(text: string): boolean {
  try {
    return filenameOf(text, 'name') === text;
  } catch {
    return false;
  }
}

/** Without what no name begins or ends with. */
function trimmed(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && '-. '.includes(text[from]!)) from++;
  while (to > from && '-. '.includes(text[to - 1]!)) to--;
  return text.slice(from, to);
}
