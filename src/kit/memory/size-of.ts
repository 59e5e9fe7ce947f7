/**
 * About how many bytes plain data takes in memory: two for each character, and what strings, members and objects take besides. Never fewer than the text in it, so
 * that a bound on the sum bounds the memory.
 */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return sizeOfText(value);
  if (typeof value !== 'object' || value === null) return memberBytes;
  const open: object[] = [value]; // no recursion: what a provider sends may be nested deep
  let bytes = 0;
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    bytes += objectBytes;
    if (ArrayBuffer.isView(one)) {
      bytes += one.byteLength;
      continue;
    }
    const isList = Array.isArray(one);
    for (const name in one) {
      bytes += isList ? memberBytes : memberBytes + 2 * name.length;
      const member = (one as Readonly<Record<string, unknown>>)[name];
      if (typeof member === 'string') bytes += sizeOfText(member);
      else if (typeof member === 'object' && member !== null) open.push(member);
    }
  }
  return bytes;
}

const objectBytes = 32;
const memberBytes = 8;
const sizeOfText = (text: string) => 16 + 2 * text.length;
