/** An element of an XML document that has ended. */
export interface XmlElement {
  /** The local names from the root to it: `urlset/url/loc`. */
  readonly path: string;
  /** Its own text without the white space around it; empty where it has none. */
  readonly text: string;
}

/** What was read is no XML, or is XML that is not taken. */
export class BadXml extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'BadXml';
  }
}

const deepest = 16;
const longestToken = 65_536;
const longestText = 16_384;

/**
 * Reads XML piece by piece and gives each element as it ends, so that whoever needs only the beginning can stop there. Nothing is expanded: a document type is
 * refused, and with it every entity but the five of XML and numbers of characters. Depth, tags and texts are bounded; the caller bounds the bytes.
 * @throws BadXml, and what the content throws
 */
export async function* readXml(content: AsyncIterable<Uint8Array>): AsyncGenerator<XmlElement> {
  const reader = new XmlReader();
  const decoder = new TextDecoder();
  for await (const bytes of content) yield* reader.read(decoder.decode(bytes, { stream: true }));
  yield* reader.read(decoder.decode());
  reader.end();
}

interface Open {
  readonly name: string;
  readonly path: string;
  /** As it is written. */
  text: string;
}

class XmlReader {
  readonly #open: Open[] = [];
  #rest = '';
  /** The end of the comment or instruction that is being passed over. */
  #passing: string | undefined;
  #hasRoot = false;

  *read(text: string): Generator<XmlElement> {
    const all = this.#rest + text;
    let at = 0;
    for (;;) {
      if (this.#passing !== undefined) {
        const end = all.indexOf(this.#passing, at);
        if (end < 0) {
          this.#rest = all.slice(Math.max(at, all.length - this.#passing.length + 1));
          return;
        }
        at = end + this.#passing.length;
        this.#passing = undefined;
      }
      const tag = all.indexOf('<', at);
      if (tag < 0) {
        this.#write(all.slice(at));
        this.#rest = '';
        return;
      }
      this.#write(all.slice(at, tag));
      at = tag;
      const end = this.#endOf(all, tag);
      if (end === undefined) {
        this.#rest = all.slice(at);
        if (this.#rest.length > longestToken) throw new BadXml('It has a tag that is too long.');
        return;
      }
      if (this.#passing === undefined) {
        const ended = this.#tag(all.slice(tag, end));
        if (ended) yield ended;
      }
      at = end;
    }
  }

  end(): void {
    if (!this.#hasRoot) throw new BadXml('It is no XML.');
    if (this.#open.length > 0 || this.#rest !== '' || this.#passing !== undefined) throw new BadXml('It ends in the middle.');
  }

  /** Where the tag ends; of a comment or an instruction where its beginning does, and the rest is passed over. @returns undefined where more is needed */
  #endOf(all: string, from: number): number | undefined {
    if (all.startsWith('<!--', from)) return this.#passOver('-->', from + 4);
    if (all.startsWith('<?', from)) return this.#passOver('?>', from + 2);
    if ('<!--'.startsWith(all.slice(from, from + 4)) || '<![CDATA['.startsWith(all.slice(from, from + 9))) {
      const end = all.startsWith('<![CDATA[', from) ? all.indexOf(']]>', from) : -1;
      return end < 0 ? undefined : end + 3;
    }
    if (all[from + 1] === '!') throw new BadXml('It has a document type, which is not taken.');
    const end = all.indexOf('>', from);
    return end < 0 ? undefined : end + 1;
  }

  #passOver(end: string, at: number): number {
    this.#passing = end;
    return at;
  }

  #tag(tag: string): XmlElement | undefined {
    if (tag.startsWith('<![CDATA[')) {
      this.#write(tag.slice(9, -3).replaceAll('&', '&amp;'));
      return undefined;
    }
    const name = /^<\/?(?:[\w.-]+:)?([\w.-]+)/.exec(tag.slice(0, 300))?.[1];
    if (name === undefined) throw new BadXml('It is no XML.');
    if (tag.startsWith('</')) return this.#close(name);
    const above = this.#open.at(-1);
    if (!above && this.#hasRoot) throw new BadXml('It has more than one root.');
    if (this.#open.length >= deepest) throw new BadXml('It is nested too deeply.');
    this.#hasRoot = true;
    this.#open.push({ name, path: above ? `${above.path}/${name}` : name, text: '' });
    return tag.endsWith('/>') ? this.#close(name) : undefined;
  }

  #close(name: string): XmlElement {
    const open = this.#open.pop();
    if (open?.name !== name) throw new BadXml('Its tags do not match.');
    return { path: open.path, text: plain(open.text).trim() };
  }

  #write(text: string): void {
    if (text.trim() === '') return;
    const open = this.#open.at(-1);
    if (!open) throw new BadXml('It is no XML.');
    if (open.text.length + text.length > longestText) throw new BadXml('It has a text that is too long.');
    open.text += text;
  }
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function plain(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[\w.-]{1,40});/gi, (_, name: string) => {
    if (name.startsWith('#')) {
      const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
      if (code === 0 || code > 0x10_ff_ff || (code >= 0xd8_00 && code <= 0xdf_ff)) throw new BadXml('It has a number of no character.');
      return String.fromCodePoint(code);
    }
    if (!Object.hasOwn(named, name)) throw new BadXml('It has an entity, which is not expanded.');
    return named[name]!;
  });
}
