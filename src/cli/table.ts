/** Rows under a head, the columns aligned; numbers stand to the right. What is wider than the terminal is for the terminal to break. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const texts = [head, ...rows].map((row) => row.map((cell) => plain(String(cell))));
  const widths = head.map((_, at) => Math.max(...texts.map((row) => row[at]!.length)));
  const isNumber = head.map((_, at) => rows.length > 0 && rows.every((row) => typeof row[at] === 'number'));
  return texts
    .map((row) =>
      row
        .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Text of strangers for a terminal: signs that steer it become `?`. */
export function plain(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}
