import { crc32 } from 'node:zlib';
import { withLists } from './word-lists.ts';
import { directoryOf, entriesOf, textOfEntry } from './zip.ts';

/** Parts of a DOCX that have text of its author. */
const texts = /^word\/(?:document|footnotes|endnotes|comments)\d*\.xml$/;

/**
 * A DOCX in which what the library passes over is text: non-breaking hyphens, which are elements of their own (ECMA-376-1, 17.3.3.18), words with their
 * reading above them (17.3.3.25), which stay without it, and lists that come from a style.
 * @param bytes an archive that `checkZip` has looked through
 */
export function withAllText(bytes: Uint8Array): Uint8Array {
  const archive = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const parts = new Map<string, Buffer>();
  const entries = entriesOf(archive);
  const styles = entries.find(({ name }) => name === 'word/styles.xml');
  const styleText = styles ? textOfEntry(bytes, styles) : '';
  for (const entry of entries) {
    if (!texts.test(entry.name)) continue;
    const text = textOfEntry(bytes, entry);
    const whole = withLists(withoutRuby(withHyphens(text)), styleText);
    if (whole !== text) parts.set(entry.name, Buffer.from(whole));
  }
  return parts.size === 0 ? bytes : withParts(archive, parts);
}

const withHyphens = (text: string) => text.replaceAll(/<w:noBreakHyphen\s?\/>/g, '<w:t>\u2011</w:t>');

const [ruby, rubyBase, rubyEnd] = ['<w:ruby>', '<w:rubyBase>', '</w:ruby>'] as const;

function withoutRuby(text: string): string {
  const [first = '', ...others] = text.split(ruby);
  const plain = others.map((piece) => {
    const [base, end] = [piece.indexOf(rubyBase), piece.indexOf(rubyEnd)];
    if (base < 0 || end < base) return ruby + piece;
    const words = piece.slice(base, end).match(/<w:t(?:\s[^<>]*)?>[^<]*<\/w:t>/g) ?? [];
    return words.join('') + piece.slice(end + rubyEnd.length);
  });
  return first + plain.join('');
}

/** The archive with other contents of some entries, which are not compressed (APPNOTE.TXT 4.3.7 and 4.3.12). */
function withParts(archive: Buffer, parts: ReadonlyMap<string, Buffer>): Buffer {
  const { start, end } = directoryOf(archive);
  const directory = Buffer.from(archive.subarray(start, end));
  const pieces: Buffer[] = [];
  let place = 0;
  let at = 0;
  for (const { name, from, to } of entriesOf(archive)) {
    const content = parts.get(name);
    const nameLength = directory.readUInt16LE(at + 28);
    if (content) {
      directory.writeUInt16LE(0, at + 10);
      for (const [value, behind] of [[crc32(content), 16], [content.length, 20], [content.length, 24]] as const) directory.writeUInt32LE(value, at + behind); // prettier-ignore
    }
    directory.writeUInt16LE(directory.readUInt16LE(at + 8) & ~8, at + 8); // the sizes stand before the content
    directory.writeUInt32LE(place, at + 42);
    const head = Buffer.alloc(30);
    head.write('PK\u0003\u0004', 'latin1');
    directory.copy(head, 4, at + 6, at + 30);
    head.writeUInt16LE(0, 28);
    const entry = [head, directory.subarray(at + 46, at + 46 + nameLength), content ?? archive.subarray(from, to)];
    pieces.push(...entry);
    place += entry.reduce((sum, { length }) => sum + length, 0);
    at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  const tail = Buffer.from(archive.subarray(end, end + 22));
  tail.writeUInt32LE(place, 16);
  tail.writeUInt16LE(0, 20);
  return Buffer.concat([...pieces, directory, tail]);
}
