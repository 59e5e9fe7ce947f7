import { textOf } from '#model/json';

/** What the reading of a provider's refusal shares, whatever its dialect. */

/** Header names in lower case. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Longer waits than this are no advice for a request. */
const longestWait = 3600;

/** Seconds to wait, where the headers say something sensible. A date is read against the sender's own clock. https://www.rfc-editor.org/rfc/rfc9110#field.retry-after */
export function retryAfterOf(headers: Headers): number | undefined {
  const header = (name: string) => {
    const value = headers[name];
    return (typeof value === 'string' ? value : value?.[0])?.trim() ?? '';
  };
  const milliseconds = header('retry-after-ms');
  const after = header('retry-after');
  const sane = [
    /^\d+(\.\d+)?$/.test(milliseconds) ? Number(milliseconds) / 1000 : NaN,
    /^\d+(\.\d+)?$/.test(after) ? Number(after) : NaN,
    /[a-z]/i.test(after) ? (Date.parse(after) - Date.parse(header('date'))) / 1000 : NaN,
  ];
  return sane.find((seconds) => seconds > 0 && seconds <= longestWait);
}

/** Words go into the log, prose does not. */
export const wordOf = (value: string) => (/^[\w.[\]-]{1,64}$/.test(value) ? value : undefined);
export const proseOf = (value: unknown) => (typeof value === 'number' ? String(value) : textOf(value));
