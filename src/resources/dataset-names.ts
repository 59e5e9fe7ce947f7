const beginsFullName = /^\s*user_custom_\d+_/;
const endsFullName = /_content\s*$/;

/** The names of datasets in a text with commas between them. A full name (`user_custom_<user>_<short name>_content`) may have commas in its short name, and `_content` before one. */
export function datasetNamesIn(text: string): readonly string[] {
  const names: string[] = [];
  const begun: string[] = []; // pieces of a full name, to be ended by the last of them that can end it
  const end = () => {
    const last = begun.findLastIndex((piece) => endsFullName.test(piece));
    if (last >= 0) names.push(begun.splice(0, last + 1).join(','));
    names.push(...begun.splice(0));
  };
  for (const piece of text.split(',')) {
    const isFirst = beginsFullName.test(piece);
    if (isFirst && begun.some((one) => endsFullName.test(one))) end();
    if (isFirst || begun.length > 0) begun.push(piece);
    else names.push(piece);
  }
  end();
  return names;
}
