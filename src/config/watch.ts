import { readFileSync, readlinkSync, statSync, watch } from 'node:fs';
import { join, parse, resolve, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { systemClock, type Clock } from '#kit/async/clock';
import { BadSettings } from './bad-settings.ts';
import type { Reading } from './reading.ts';
import { restartSettings, type Settings } from './schema/index.ts';

/** An editor writes in several steps, and a mounted folder is swapped in several: the last one counts. Who asks by hand may do so while the file is written. */
const settleMilliseconds = 100;

export interface Change {
  readonly reading: Reading;
  /** Top-level settings that are not as they were. */
  readonly changed: readonly (keyof Settings)[];
  /** Those that differ from the start and hold only after a restart. */
  readonly restart: readonly (keyof Settings)[];
}

interface Watched {
  /** What holds now. */
  readonly reading: Reading;
  /** Reads as soon as the file is quiet: for SIGHUP. */
  reload(): void;
  close(): void;
}

interface Watching {
  /** What the server started with. */
  readonly start: Reading;
  /** Reads everything again. */
  readonly read: () => Reading;
  /**
   * Takes the new settings over; if it throws, or rejects, they do not hold. Called for a `reload` also when nothing has changed, and never again before the
   * last one is done.
   */
  readonly changed: (change: Change) => void | Promise<void>;
  /** The running settings stay: BadSettings, what `changed` threw, or why the file cannot be watched. */
  readonly failed: (error: Error) => void;
  readonly clock?: Clock;
  readonly watchFolder?: WatchFolder;
}

/** Calls when something happens in a folder; the answer ends it. */
type WatchFolder = (folder: string, happened: () => void, failed: (error: Error) => void) => () => void;

/** Keeps the settings as the file says, or as they were while the file is bad. */
export function watchSettings({ start, read, changed, failed, clock = systemClock, watchFolder = watchWithSystem }: Watching): Watched {
  const { path } = start;
  let reading = start;
  let seen = stampOf(path);
  let asked = false;
  let changing = false;
  let again = false;
  let cancel = () => {};
  let closed = false;
  let endWatching = () => {};

  const look = () => {
    if (stampOf(path) !== seen) settle();
  };

  /** Waits until the file is as it was a moment before. */
  const settle = () => {
    if (closed) return;
    seen = stampOf(path);
    cancel();
    cancel = clock.after(settleMilliseconds, () => {
      if (changing) again = true;
      else if (stampOf(path) === seen) reread();
      else settle();
    });
  };

  const reread = () => {
    rewatch();
    const next = attempted(read);
    if (stampOf(path) !== seen) return settle(); // it was written while it was read
    const isAsked = asked;
    asked = false;
    try {
      if (next instanceof Error) throw next;
      const names = differing(reading.settings, next.settings);
      requireFile(reading, next, names.length > 0);
      const restart = differing(start.settings, next.settings).filter(needsRestart);
      const taken = names.length > 0 || isAsked ? changed({ reading: next, changed: names, restart }) : undefined;
      if (taken) void takeOver(next, taken);
      else reading = next;
    } catch (error) {
      failed(error as Error);
    }
  };

  const takeOver = async (next: Reading, taken: Promise<void>) => {
    changing = true;
    try {
      await taken;
      reading = next;
    } catch (error) {
      failed(error as Error);
    }
    changing = false;
    if (again) settle();
    again = false;
  };

  /** Links may lead elsewhere than before, and a folder that was made anew is another. */
  const rewatch = () => {
    endWatching();
    endWatching = watchFolders(foldersOf(path), watchFolder, look, failed);
  };

  rewatch();
  return {
    get reading() {
      return reading;
    },
    reload() {
      asked = true;
      settle();
    },
    close() {
      closed = true;
      cancel();
      endWatching();
    },
  };
}

/** @returns what ends the watching of all of them */
function watchFolders(folders: readonly string[], watchFolder: WatchFolder, happened: () => void, failed: (error: Error) => void): () => void {
  const watched = folders.flatMap((folder) => {
    try {
      return watchFolder(folder, happened, failed);
    } catch (error) {
      failed(error as Error);
      return [];
    }
  });
  return () => {
    for (const end of watched.splice(0)) end();
  };
}

/** @throws BadSettings where the file is gone, or changes settings by being empty: an editor may be about to write it */
function requireFile(before: Reading, { file }: Reading, isChanged: boolean): void {
  if (before.file !== undefined && file === undefined) throw new BadSettings([{ place: before.file, message: 'This file is gone.' }]);
  if (isChanged && file !== undefined && isEmpty(file)) throw new BadSettings([{ place: file, message: 'This file is empty.' }]);
}

const needsRestart = (name: keyof Settings) => (restartSettings as readonly string[]).includes(name);

function differing(from: Settings, to: Settings): (keyof Settings)[] {
  const names = new Set([...Object.keys(from), ...Object.keys(to)] as (keyof Settings)[]);
  return [...names].filter((name) => !isDeepStrictEqual(from[name], to[name]));
}

/** Tells one state of the file from another, through links. */
function stampOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

function attempted(read: () => Reading): Reading | Error {
  try {
    return read();
  } catch (error) {
    return error as Error;
  }
}

function isEmpty(file: string): boolean {
  return readFileSync(file, 'utf8').trim() === '';
}

/** Every folder in which a change can make the path lead to something else: that of the file, and that of each link on the way. */
function foldersOf(path: string): string[] {
  const folders = new Set<string>();
  let links = 0;
  const walk = (way: string): void => {
    let at = parse(way).root;
    const steps = way.slice(at.length).split(sep);
    for (const [index, step] of steps.entries()) {
      const next = join(at, step);
      const end = linkOf(next);
      if (end !== undefined || index === steps.length - 1) folders.add(at);
      if (end !== undefined && links++ < 40) return walk(resolve(at, end, ...steps.slice(index + 1)));
      at = next;
    }
  };
  walk(path);
  return [...folders];
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

const watchWithSystem: WatchFolder = (folder, happened, failed) => {
  const watcher = watch(folder, { persistent: false }, happened);
  watcher.on('error', failed);
  return () => watcher.close();
};
