/** Rows under a header, with aligned columns; numbers are right-aligned. Long lines are left for the terminal to wrap. */
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

/** Untrusted text for a terminal: control characters become `?`. */
export const plain = (text: string): string => text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
