import type { Bar, Row } from './question.ts';

/** The rows as a Markdown table, which can be pasted into README.md. */
export function table(rows: readonly Row[]): string {
  const lines = [['what', 'who', 'measured', '× floor', '× nginx', 'database', 'bars'], ...rows.map(cells)];
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const printed = lines.map((line) => `| ${line.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`);
  return [printed[0], `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...printed.slice(1)].join('\n');
}

function cells({ what, who, value, timesFloor, timesNginx, database, note, bars = [] }: Row): string[] {
  return [what, who, `${figure(value)}${note ? ` (${note})` : ''}`, figure(timesFloor), figure(timesNginx), figure(database), bars.map(verdict).join('; ')];
}

function figure(value: number | undefined): string {
  if (value === undefined) return '';
  return Number.isFinite(value) ? value.toFixed(Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0) : '–';
}

function verdict({ says, held, stretch }: Bar): string {
  const word = held === undefined ? 'not compared' : held ? 'pass' : stretch ? 'not yet' : 'MISS';
  return `${stretch ? 'stretch ' : ''}${says}: ${word}`;
}
