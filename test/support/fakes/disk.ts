import { dirname } from 'node:path';
import type { Disk, DiskFile } from '../../../src/ledger/journal/disk.ts';

/** A disk in memory that can be filled, broken and cut off. */
export interface TestDisk extends Disk {
  /** Bytes it has in all. */
  capacity: number;
  /**
   * Told of each act before it is done; what it throws is the act's failure, and of a write the answer may be how many bytes are written before it fails.
   * A sync that fails loses what it should have kept.
   */
  before: (act: 'create' | 'write' | 'fill' | 'sync' | 'read' | 'list' | 'append' | 'remove' | 'free', path: string) => number | void;
  /** Synchronous writes so far. */
  readonly writes: number;
  /** The process dies: its files are closed, what it wrote is there. @returns the disk as the next process finds it; the old one answers nobody any more */
  processDied(): TestDisk;
  /** The same disk as another process of the machine has it. */
  another(): TestDisk;
  /** The power is cut: of what was not synced some is there, some is not, some in part; what was removed may be back. @param chance a number from 0 to 1 */
  powerCut(chance: () => number): TestDisk;
  /** Another disk with the same on it. */
  copy(): TestDisk;
  /** The bytes of a file, to be looked at and changed. */
  bytes(path: string): Buffer;
  put(path: string, bytes: Buffer): void;
  readonly paths: readonly string[];
}

interface File {
  /** As a reader sees it. */
  seen: Buffer;
  /** As it would be after a power cut, with these writes lost. */
  kept: Buffer;
  /** Has its name been synced? */
  named: boolean;
  pending: { readonly at: number; readonly bytes: Buffer }[];
}

const sectorBytes = 512;

export const diskError = (code: 'ENOSPC' | 'EIO' | 'EEXIST'): Error => Object.assign(new Error(`${code}: told so by the test`), { code });

/** What all processes of a machine see. */
interface Platter {
  readonly files: Map<string, File>;
  /** Those that were made for a file and not removed. */
  readonly folders: Set<string>;
  /** Files whose removal would not survive a power cut. */
  readonly removed: Map<string, File>;
  capacity: number;
}

export function testDisk(platter: Platter = { files: new Map(), folders: new Set(), removed: new Map(), capacity: Infinity }): TestDisk {
  const { files, folders, removed } = platter;
  let dead = false;
  let writes = 0;
  const never = new Promise<never>(() => {});
  /** One who died hears no answer, and does nothing. */
  const later = async <Value>(work: () => Value): Promise<Value> => {
    await Promise.resolve();
    if (dead) return never;
    try {
      return work();
    } finally {
      await Promise.resolve();
      if (dead) await never;
    }
  };
  const used = () => [...files.values()].reduce((sum, { seen }) => sum + seen.length, 0);
  const store = (file: File, at: number, bytes: Buffer) => {
    const growth = Math.max(0, at + bytes.length - file.seen.length);
    const room = platter.capacity - used();
    const fits = growth <= room ? bytes.length : Math.max(0, bytes.length - growth + room);
    if (fits > 0) {
      file.seen = over(file.seen, at, bytes.subarray(0, fits));
      file.pending.push({ at, bytes: Buffer.from(bytes.subarray(0, fits)) });
    }
    if (fits < bytes.length) throw diskError('ENOSPC');
  };
  const sync = (file: File) => {
    for (const { at, bytes } of file.pending.splice(0)) file.kept = over(file.kept, at, bytes);
    if (!file.named) removed.clear(); // a name is made last by a sync of its folder
    file.named = true;
  };
  const tell = (act: Parameters<TestDisk['before']>[0], path: string) => {
    if (dead) throw new Error('This process is dead.');
    return disk.before(act, path);
  };

  const disk: TestDisk = {
    get capacity() {
      return platter.capacity;
    },
    set capacity(bytes) {
      platter.capacity = bytes;
    },
    before: () => {},
    get writes() {
      return writes;
    },
    create(path) {
      tell('create', path);
      if (files.has(path)) throw diskError('EEXIST');
      const file: File = { seen: Buffer.alloc(0), kept: Buffer.alloc(0), named: false, pending: [] };
      files.set(path, file);
      folders.add(dirname(path));
      const open: DiskFile = {
        write(bytes, from, to) {
          writes++;
          const most = tell('write', path);
          store(file, from, bytes.subarray(from, Math.min(to, from + (most ?? Infinity))));
          if (most !== undefined) throw diskError('EIO');
        },
        fill: (length) =>
          later(() => {
            tell('fill', path);
            store(file, 0, Buffer.alloc(length));
            sync(file);
          }),
        sync: () =>
          later(() => {
            try {
              tell('sync', path);
            } catch (error) {
              file.pending = []; // the kernel takes the pages for clean from now on
              throw error;
            }
            sync(file);
          }),
        close() {},
      };
      return open;
    },
    list: (folder) =>
      later(() => {
        tell('list', folder);
        const names = new Set<string>();
        for (const all of [files.keys(), folders.keys()])
          for (const path of all) if (path.startsWith(`${folder}/`)) names.add(path.slice(folder.length + 1).split('/')[0]!);
        return [...names];
      }),
    read: (path, from, length) =>
      later(() => {
        tell('read', path);
        return Buffer.from(files.get(path)?.seen.subarray(from, from + length) ?? []);
      }),
    append: (path, text) =>
      later(() => {
        tell('append', path);
        const bytes = Buffer.concat([files.get(path)?.seen ?? Buffer.alloc(0), Buffer.from(text)]);
        files.set(path, { seen: bytes, kept: bytes, named: true, pending: [] });
      }),
    remove: (path) =>
      later(() => {
        tell('remove', path);
        const file = files.get(path);
        if (file) removed.set(path, file);
        files.delete(path);
        if (![...files.keys()].some((other) => other.startsWith(`${path}/`))) folders.delete(path);
      }),
    free: (folder) =>
      later(() => {
        tell('free', folder);
        return platter.capacity - used();
      }),
    processDied() {
      dead = true;
      return testDisk(platter);
    },
    another: () => testDisk(platter),
    powerCut(chance) {
      dead = true;
      for (const [path, file] of removed) if (!files.has(path) && chance() < 0.5) files.set(path, file);
      removed.clear();
      for (const [path, file] of files) {
        if (!file.named && chance() < 0.5) {
          files.delete(path);
          continue;
        }
        for (const { at, bytes } of file.pending.splice(0))
          for (const piece of sectors(at, bytes)) if (chance() < 0.5) file.kept = over(file.kept, piece.at, piece.bytes);
        file.seen = Buffer.from(file.kept);
        file.named = true;
      }
      return testDisk(platter);
    },
    copy() {
      const copies = [...files].map(([path, file]): [string, File] => [
        path,
        { ...file, seen: Buffer.from(file.seen), kept: Buffer.from(file.kept), pending: [...file.pending] },
      ]);
      return testDisk({ files: new Map(copies), folders: new Set(folders), removed: new Map(), capacity: platter.capacity });
    },
    bytes: (path) => files.get(path)?.seen ?? Buffer.alloc(0),
    put: (path, bytes) => void files.set(path, { seen: bytes, kept: bytes, named: true, pending: [] }),
    get paths() {
      return [...files.keys()].toSorted();
    },
  };
  return disk;
}

/** Bytes laid over others, in place where there is room: nobody keeps a view of them. */
function over(under: Buffer, at: number, bytes: Buffer): Buffer {
  const whole = under.length >= at + bytes.length ? under : Buffer.concat([under, Buffer.alloc(at + bytes.length - under.length)]);
  bytes.copy(whole, at);
  return whole;
}

/** The parts of a write that a disk keeps or loses as one. */
function* sectors(at: number, bytes: Buffer): Generator<{ at: number; bytes: Buffer }> {
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + sectorBytes - ((at + from) % sectorBytes));
    yield { at: at + from, bytes: bytes.subarray(from, to) };
    from = to;
  }
}
