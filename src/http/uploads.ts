import type { Exchange } from './exchange.ts';
import { noRoom } from '#core/fault';

export interface UploadedFile {
  readonly field: string;
  /** As the client wrote it, without a path; empty where it gave none. */
  readonly filename: string;
  /** The media type that the client named. */
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** SHA-256 in hexadecimal digits. */
  readonly hash: string;
  /** Its bytes, until the request is answered. */
  readonly content: Blob;
}

/** Where files of a form are held while their request is answered. */
export interface Uploads {
  /** Reads the content to its end. Nothing stays where that fails. @throws Fault `overloaded` where there is no room */
  hold(content: AsyncIterable<Uint8Array>): Promise<HeldFile>;
}

export interface HeldFile {
  readonly content: Blob;
  remove(): Promise<void>;
}

/** In memory, which counts as that of the request. */
export function heldInMemory(exchange: Exchange): Uploads {
  return {
    async hold(content) {
      const pieces: Uint8Array<ArrayBuffer>[] = [];
      for await (const piece of content) {
        if (!exchange.take(piece.length)) throw noRoom();
        pieces.push(new Uint8Array(piece)); // a copy: a view would keep the whole of what arrived with it
      }
      return { content: new Blob(pieces), remove: () => Promise.resolve() };
    },
  };
}
