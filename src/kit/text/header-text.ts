import { isUtf8 } from 'node:buffer';

/** The text of a header: most clients write it in UTF-8, and the runtime reads every byte as a character of Latin-1. What is not UTF-8 is Latin-1. */
export function headerText(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value;
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : value;
}
