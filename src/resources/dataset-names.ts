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
