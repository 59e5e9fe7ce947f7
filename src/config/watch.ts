import { readFileSync, readlinkSync, statSync, watch } from 'node:fs';
import { join, parse, resolve, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { systemClock, type Clock } from '#kit/async/clock';
import { BadSettings } from './bad-settings.ts';
import type { Reading } from './reading.ts';
import { restartSettings, type Settings } from './schema/index.ts';

/** An editor writes a file, and a mounted volume is swapped, in several steps. The settings are read after the last one, for a reload by hand as well. */
const settleMilliseconds = 100;

export interface Change {
  readonly reading: Reading;
  /** Top-level settings that have changed, without those whose defaults follow from others: the first model is the default model. */
  readonly changed: readonly (keyof Settings)[];
  /** Settings that differ from those at startup and take effect only after a restart. */
  readonly restart: readonly (keyof Settings)[];
}

interface Watched {
  /** The settings in effect. */
  readonly reading: Reading;
  /** Reads the settings once the file has stopped changing: for SIGHUP. */
  reload(): void;
  close(): void;
}

interface Watching {
  /** The settings at startup. */
  readonly start: Reading;
  /** Reads all settings again. */
  readonly read: () => Reading;
  /** Applies the new settings; if it throws or rejects, the old ones stay in effect. A `reload` calls it even if nothing has changed. Calls never overlap. */
  readonly changed: (change: Change) => void | Promise<void>;
  /** Reports an error that leaves the settings unchanged: BadSettings, an error of `changed`, or a failure to watch the file. */
  readonly failed: (error: Error) => void;
  readonly clock?: Clock;
  readonly watchFolder?: WatchFolder;
}

/** Watches a folder and calls back on each event. @returns a function that stops watching */
type WatchFolder = (folder: string, happened: () => void, failed: (error: Error) => void) => () => void;

/** Reloads the settings whenever the file changes. While the file is invalid, the previous settings stay in effect. */
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

  /** Waits until the file has stopped changing. */
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
    if (stampOf(path) !== seen) return settle(); // the file changed while it was read
    const isAsked = asked;
    asked = false;
    try {
      if (next instanceof Error) throw next;
      const names = differing(reading.settings, next.settings);
      requireFile(reading, next, names.length > 0);
      const restart = differing(start.settings, next.settings).filter(needsRestart);
      const taken =
        names.length > 0 || isAsked ? changed({ reading: next, changed: names.filter((name) => isGivenAnew(name, reading, next)), restart }) : undefined;
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

  /** Links may point elsewhere than before, and a recreated folder is a new one to the system. */
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

/** @returns a function that stops watching all folders */
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

/** @throws BadSettings if the file was removed, or if settings changed because it is empty: an editor may be about to write it */
function requireFile(before: Reading, { file }: Reading, isChanged: boolean): void {
  if (before.file !== undefined && file === undefined) throw new BadSettings([{ place: before.file, message: 'This file is gone.' }]);
  if (isChanged && file !== undefined && isEmpty(file)) throw new BadSettings([{ place: file, message: 'This file is empty.' }]);
}

const needsRestart = (name: keyof Settings) => (restartSettings as readonly string[]).includes(name);

function differing(from: Settings, to: Settings): (keyof Settings)[] {
  const names = new Set([...Object.keys(from), ...Object.keys(to)] as (keyof Settings)[]);
  return [...names].filter((name) => !isDeepStrictEqual(from[name], to[name]));
}

const isGivenAnew = (name: keyof Settings, before: Reading, next: Reading) =>
  next.given.some((source, at) => !isDeepStrictEqual(source[name], before.given[at]?.[name]));

/** Identifies the state of the file; follows links. */
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

const isEmpty = (file: string): boolean => readFileSync(file, 'utf8').trim() === '';

/** Every folder in which a change can affect the path: that of the file, and that of each link along the path. */
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
