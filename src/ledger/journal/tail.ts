import type { SegmentsDeps } from './files.ts';
import { firstRecord, recordAt, type FoundRecord, type RecordKind } from './record.ts';
import { mostSegmentBytes, offsetOf, placeOf, segmentOf, segmentPath, segmentsOf } from './segments.ts';

/** A record and its place in the journal. */
export interface Entry {
  readonly kind: RecordKind;
  readonly json: Buffer;
  /** The place behind it. */
  readonly to: number;
}

export interface TailDeps extends Pick<SegmentsDeps, 'disk' | 'folder' | 'writer'> {
  readonly log: (problem: string, cause: unknown) => void;
}

/** Bytes read at a time: when there is little, and when the last read found much. */
const usualBytes = 65_536;
const manyBytes = 1_048_576;

/** Reads a journal from its first record on, while it is being written or when its writer is gone. */
export class Tail {
  readonly #deps: TailDeps;
  #bytes = usualBytes;
  /** Everything before this place has been read. */
  place = 0;

  constructor(deps: TailDeps) {
    this.#deps = deps;
  }

  /**
   * The next records, about a megabyte at most; none when there is nothing new.
   * @param ended nobody writes any more: what cannot be read is passed over, up to the end
   */
  async read(ended: boolean): Promise<readonly Entry[]> {
    for (;;) {
      const from = this.place;
      const bytes = await this.#read(offsetOf(from), this.#bytes);
      const entries = this.#taken(bytes, recordAt(bytes, 0));
      this.#bytes = this.place - from > usualBytes / 2 ? manyBytes : usualBytes;
      if (entries.length > 0) return entries;
      const next = await this.#next(ended);
      const isBlank = (bytes[0] ?? 0) === 0;
      if (isBlank && next === undefined && !ended) return [];
      const found = await this.#searched(ended);
      if (found.length > 0) return found;
      if (next === undefined) return [];
      this.place = placeOf(next, 0);
    }
  }

  /** The file after this one: any for a journal that has ended, else one that has been begun, after which nobody writes to this one. */
  async #next(ended: boolean): Promise<number | undefined> {
    const { disk, folder, writer } = this.#deps;
    const later = (await this.segments()).filter((number) => number > segmentOf(this.place));
    if (ended) return later[0];
    for (const number of later) {
      const [first] = await disk.read(segmentPath(folder, writer, number), 0, 1);
      if (first) return number;
    }
    return undefined;
  }

  /** What is behind bytes that are no record, or were none yet when they were read: the writer may have gone on. */
  async #searched(ended: boolean): Promise<readonly Entry[]> {
    const rest = () => this.#read(offsetOf(this.place), mostSegmentBytes - offsetOf(this.place));
    let bytes = await rest();
    let found = firstRecord(bytes);
    if (found && found.from > 0 && !ended) {
      // Read while it was written? A later record is there, so by now this one is too.
      bytes = await rest();
      found = firstRecord(bytes);
    }
    if (found && found.from > 0) {
      const damaged = bytes.subarray(0, found.from).some((byte) => byte !== 0);
      const where = `${this.#deps.folder}/${this.#deps.writer}, file ${segmentOf(this.place)}, byte ${offsetOf(this.place)}`;
      if (damaged || !ended) this.#deps.log(`${found.from} bytes of the journal cannot be read: ${where}.`, undefined);
    }
    return this.#taken(bytes, found);
  }

  #read(from: number, length: number): Promise<Buffer> {
    const { disk, folder, writer } = this.#deps;
    return disk.read(segmentPath(folder, writer, segmentOf(this.place)), from, length);
  }

  #taken(bytes: Buffer, first: FoundRecord | undefined): readonly Entry[] {
    const entries: Entry[] = [];
    const [segment, offset] = [segmentOf(this.place), offsetOf(this.place)];
    for (let record = first; record && (record.to <= manyBytes || entries.length === 0); record = recordAt(bytes, record.to)) {
      const { kind, json } = record;
      this.place = placeOf(segment, offset + record.to);
      entries.push({ kind, json, to: this.place });
    }
    return entries;
  }

  async segments(): Promise<readonly number[]> {
    const { disk, folder, writer } = this.#deps;
    return segmentsOf(await disk.list(folder)).get(writer) ?? [];
  }
}
