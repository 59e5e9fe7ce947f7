import { normalized } from '#kit/text/normalized';

/** The spellings of a name in Unicode: as it is, with composed characters, and with decomposed ones, as macOS has them. All of them name the same. */
export const spellingsOf = (name: string): readonly string[] => [...new Set([name, normalized(name, 'NFC'), normalized(name, 'NFD')])];

const sayNothing = new Set(['', 'none', 'null', 'undefined']);

/** Does a name say that no dataset is meant? In whatever letters: Python writes `None`. */
export const namesNothing = (name: string): boolean => sayNothing.has(name.toLowerCase());

/** Does a name mean all datasets that its user may read? */
export const namesAll = (name: string): boolean => name.toLowerCase() === 'all';

/** The names of datasets in a text with commas between them. A full name (`user_custom_<user>_<short name>_content`) may have commas in its short name. */
export function datasetNamesIn(text: string): readonly string[] {
  const names: string[] = [];
  const begun: string[] = []; // pieces of a full name that has not ended yet
  for (const piece of text.split(',')) {
    const isInside = begun.length > 0 || /^\s*user_custom_\d+_/.test(piece);
    if (isInside) begun.push(piece);
    else names.push(piece);
    if (isInside && /_content\s*$/.test(piece)) names.push(begun.splice(0).join(','));
  }
  return [...names, ...begun];
}
