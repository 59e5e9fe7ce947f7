import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { Fault, noRoom } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { arriving, tooLarge } from './arriving.ts';
import type { Exchange } from './exchange.ts';
import type { HeldFile, UploadedFile, Uploads } from './uploads.ts';

export interface MultipartLimits {
  /** Bytes of a file. */
  readonly fileBytes: number;
  /** Bytes of the whole body; absent: what its parts may have. */
  readonly bodyBytes?: number;
  /** Seconds in which the next bytes must arrive. */
  readonly bodyIdleSeconds: number;
}

export interface MultipartForm {
  readonly fields: readonly (readonly [name: string, text: string])[];
  readonly files: readonly UploadedFile[];
  /** To be called when the request is answered. */
  remove(): Promise<void>;
}

const mostParts = 100;
const mostFieldBytes = 1_048_576;
const mostNameCharacters = 200;
/** Bytes of the headers of a part: names are read from no more. */
const mostHead = 8192;
/** Bytes that belong to no part: before the first boundary, behind the last one, and headers. */
const mostBetween = mostParts * 2 * mostHead;
/** Bytes that are read of a form before it may be refused. */
const atOnce = 16_384;

/**
 * Reads a form part by part as it arrives; the bytes of its files go to `uploads`.
 * @throws Fault `invalid`, `too-large`, `slow-client`, `overloaded`; nothing of the files is held then
 */
export async function readMultipart(
  exchange: Exchange,
  { type, limits, uploads, clock }: { readonly type: string; readonly limits: MultipartLimits; readonly uploads: Uploads; readonly clock: Clock },
): Promise<MultipartForm> {
  const { bodyBytes = Infinity } = limits;
  if (Number(exchange.header('content-length') ?? 0) > bodyBytes) throw tooLarge(bodyBytes);
  const reading = new Reading(exchange, boundaryIn(type), limits, uploads);
  exchange.invite();
  try {
    await reading.feed(clock);
    return await reading.form();
  } catch (error) {
    await reading.giveUp();
    throw error;
  }
}

/** Without backslashes, which the parser would take away: two readers could find two boundaries. */
function boundaryIn(type: string): string {
  const named = /;\s*boundary=(?:"([^"\\]{1,200})"|([^\s;"\\]{1,200}))(?=\s*(?:;|$))/i.exec(type);
  if (!named) throw new Fault('invalid', 'Content-Type must name the boundary of the form, of 1 to 200 characters.', { field: 'Content-Type' });
  return named[1] ?? named[2]!;
}

class Reading {
  readonly #exchange: Exchange;
  readonly #limits: MultipartLimits;
  readonly #uploads: Uploads;
  readonly #parser: BusboyInstance;
  readonly #fields: (readonly [string, string])[] = [];
  readonly #held: HeldFile[] = [];
  readonly #files: Promise<UploadedFile>[] = [];
  readonly #failure = Promise.withResolvers<never>();
  #fault: Error | undefined;
  #open: Readable | undefined;
  /** The field that is being read, where it is no file. */
  #field: string | undefined;
  /** Parts that have a name. */
  #begun = 0;
  #received = 0;
  /** Bytes of files and of complete fields. */
  #counted = 0;

  constructor(exchange: Exchange, boundary: string, limits: MultipartLimits, uploads: Uploads) {
    this.#exchange = exchange;
    this.#limits = limits;
    this.#uploads = uploads;
    this.#failure.promise.catch(() => {}); // it may fail when nobody waits
    this.#parser = new Busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
      limits: { parts: mostParts, fieldSize: mostFieldBytes, fileSize: limits.fileBytes, headerSize: mostHead, headerPairs: mostHead },
      isPartAFile: (name, partType, filename) => this.#begins(name, filename !== undefined || partType === 'application/octet-stream'),
    });
    this.#parser.on('partsLimit', () => this.#fail(new Fault('invalid', `The form must have at most ${mostParts} parts.`)));
    this.#parser.on('field', (name, text, _nameCut, isCut) => {
      this.#field = undefined;
      this.#counted += Buffer.byteLength(text);
      if (isCut) this.#fail(fieldTooLarge(name));
      else this.#fields.push([name, text]);
    });
    this.#parser.on('file', (field, stream, filename: string | undefined, _encoding, partType) => {
      stream.on('error', () => {}); // a form that ends within a file: the parser says so itself
      this.#open = stream;
      stream.on('limit', () => this.#fail(new Fault('too-large', `${field} must have at most ${limits.fileBytes} bytes.`, { field })));
      // browsers, curl and libraries write a quotation mark in a name as %22
      const file = this.#hold({ field, filename: (filename ?? '').replaceAll('%22', '"'), type: partType }, stream);
      file.catch((error: unknown) => this.#fail(error));
      this.#files.push(file);
    });
    this.#parser.on('error', (cause) =>
      this.#fail(new Fault('invalid', 'The body is not a form: its parts do not fit the boundary in Content-Type.', { cause })),
    );
  }

  /** Gives the parser what arrives, a little at a time: a form that is refused is not read further, and others have their turn. */
  async feed(clock: Clock): Promise<void> {
    const failure = { promise: this.#failure.promise, reject: (fault: Fault) => this.#fail(fault) };
    for await (const piece of arriving(this.#exchange, { idleSeconds: this.#limits.bodyIdleSeconds, clock, failure }))
      for (let at = 0; at < piece.length; at += atOnce) await this.#give(piece.subarray(at, at + atOnce));
    await this.#finished();
  }

  async form(): Promise<MultipartForm> {
    // a browser sends an empty part without a filename where no file was chosen
    const files = (await Promise.all(this.#files)).filter(({ filename, size }) => filename !== '' || size > 0);
    return { fields: this.#fields, files, remove: () => this.#remove() };
  }

  async giveUp(): Promise<void> {
    this.#open?.destroy();
    await Promise.allSettled(this.#files);
    await this.#remove();
  }

  async #give(piece: Buffer): Promise<void> {
    this.#received += piece.length;
    if (this.#received > (this.#limits.bodyBytes ?? Infinity)) throw tooLarge(this.#limits.bodyBytes!);
    if (this.#field !== undefined && !this.#exchange.take(piece.length)) throw noRoom();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#parser.write(piece, () => resolve());
    await Promise.race([promise, this.#failure.promise]);
    if (this.#fault !== undefined) throw this.#fault;
    const loose = this.#received - this.#counted;
    if (loose <= mostBetween + mostFieldBytes) return;
    throw this.#field === undefined ? new Fault('invalid', 'The body is not a form: too much of it belongs to no part.') : fieldTooLarge(this.#field);
  }

  #finished(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#parser.once('finish', () => {
      if (partsOf(this.#parser) > this.#begun) this.#fail(unnamedPart());
      if (this.#fault === undefined) resolve();
    });
    this.#parser.end();
    return Promise.race([promise, this.#failure.promise]);
  }

  #begins(name: string | undefined, isFile: boolean): boolean {
    this.#begun++;
    this.#field = isFile ? undefined : (name ?? '');
    if (name === undefined || name === '') this.#fail(unnamedPart());
    else if (name.length > mostNameCharacters) this.#fail(new Fault('invalid', `The name of a field must have at most ${mostNameCharacters} characters.`));
    return isFile;
  }

  async #hold(named: Pick<UploadedFile, 'field' | 'filename' | 'type'>, stream: Readable): Promise<UploadedFile> {
    const hash = createHash('sha256');
    const held = await this.#uploads.hold(this.#passing(stream, hash));
    this.#held.push(held);
    return { ...named, size: held.content.size, hash: hash.digest('hex'), content: held.content };
  }

  async *#passing(stream: Readable, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      hash.update(piece);
      this.#counted += piece.length;
      yield piece;
    }
    if (this.#fault !== undefined) throw this.#fault;
  }

  #fail(thrown: unknown): void {
    this.#fault ??= thrown instanceof Error ? thrown : new Error('A form cannot be read.', { cause: thrown });
    this.#open?.destroy();
    this.#failure.reject(this.#fault);
  }

  async #remove(): Promise<void> {
    await Promise.all(this.#held.map((one) => one.remove()));
  }
}

/** The parser passes over a part that it cannot read, and tells only in this count. */
const partsOf = (parser: BusboyInstance) => (parser as unknown as { readonly _parser: { readonly _nparts: number } })._parser._nparts;

const unnamedPart = () => new Fault('invalid', `Each part of the form must have a name, and at most ${mostHead} bytes of headers.`);

const fieldTooLarge = (name: string) =>
  new Fault('too-large', `${name.slice(0, 100)} must have at most ${mostFieldBytes} bytes.`, { field: name.slice(0, 100) });
