import { styleText } from 'node:util';
import type { LogLevel } from '#core/log-levels';

const colours = { trace: 'gray', debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red', fatal: 'red' } as const;

/** A line of the log for people: the local time, the level, a request as `200 POST /path`, and what else there is. Colours as `NO_COLOR` says. */
export function prettyLine(level: LogLevel, fields: object, message: string): string {
  const { method, path, status, ms, ...others } = fields as Readonly<Record<string, unknown>>;
  const isRequest = message === 'request' && typeof status === 'number';
  const time = new Date().toLocaleTimeString('sv-SE');
  const mark = styleText([colours[level], 'bold'], level.toUpperCase().padEnd(5), { stream: process.stderr });
  const text = isRequest ? `${coloured(status)} ${String(method)} ${String(path)} ${String(ms)} ms` : message;
  const rest = Object.entries(others).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${valueText(name === 'cause' ? causeText(value) : value)}`],
  );
  const more = rest.length === 0 ? '' : `  ${styleText('dim', rest.join(' '), { stream: process.stderr })}`;
  return `${time} ${mark} ${text}${more}\n`;
}

const coloured = (status: number): string => styleText(status < 400 ? 'green' : status < 500 ? 'yellow' : 'red', String(status), { stream: process.stderr });

/** Of an error that is a cause, what the innermost one says; of anything else, itself. The log as JSON has all of it. */
function causeText(value: unknown): unknown {
  let [inner, said]: unknown[] = [value];
  while (inner !== null && typeof inner === 'object') {
    const { message, cause } = inner as { message?: unknown; cause?: unknown };
    if (typeof message === 'string' && message !== '') said = message;
    inner = cause;
  }
  return said ?? value;
}

/** A word as it is, anything else as JSON, so that no value can end the line or move the cursor. */
const valueText = (value: unknown): string =>
  typeof value === 'string' && /^[\w.:/@-]{1,200}$/.test(value) ? value : (JSON.stringify(value) ?? '').replaceAll(/[\u007f-\u009f]/g, '?');
