import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { BadSettings, watchSettings, type Change, type Reading } from './index.ts';
import { testClock } from '../../test/support/fakes/clock.ts';
import { folderWith, readSettings } from '../../test/support/settings-folder.ts';

const model = (name: string) => `models: { ${name}: { targets: [{ provider: built-in }] } }`;

/** Watches a file with a clock and a folder that the test moves. */
function watching(
  yaml: string | undefined,
  { env = {}, port, taking }: { env?: Record<string, string>; port?: string; taking?: (change: Change) => Promise<void> } = {},
) {
  const cwd = folderWith(yaml);
  const clock = testClock();
  const read = vi.fn<() => Reading>(() => readSettings({ cwd, env, args: { port } }));
  const changes: Change[] = [];
  const failures: Error[] = [];
  const open = new Map<string, () => void>();
  const watched = watchSettings({
    start: read(),
    read,
    changed: (change) => {
      changes.push(change);
      return taking?.(change);
    },
    failed: (error) => failures.push(error),
    clock,
    watchFolder(folder, happened) {
      open.set(folder, happened);
      return () => open.delete(folder);
    },
  });
  const happens = () => [...open.values()].forEach((happened) => happened());
  return {
    cwd,
    read,
    changes,
    failures,
    watched,
    happens,
    clock,
    folders: open,
    write: (text: string) => writeFileSync(join(cwd, 'dragoman.yaml'), text),
    settle() {
      happens();
      clock.advance(100);
    },
  };
}

describe('a change that takes its time', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  test('is over before the next one begins, and what was written meanwhile is taken then', async () => {
    const taking: PromiseWithResolvers<void>[] = [];
    const take = () => {
      taking.push(Promise.withResolvers());
      return taking.at(-1)!.promise;
    };
    const { write, settle, clock, changes, watched } = watching(model('a'), { taking: take });
    write(model('second'));
    settle();
    write(model('third'));
    settle();
    expect([changes.length, Object.keys(watched.reading.settings.models)]).toEqual([1, ['a']]);
    taking[0]!.resolve();
    await settled();
    clock.advance(100);
    expect([changes.length, Object.keys(watched.reading.settings.models)]).toEqual([2, ['second']]);
    taking[1]!.resolve();
    await settled();
    expect(Object.keys(watched.reading.settings.models)).toEqual(['third']);
  });

  test('and is refused in the end does not hold, and the same again is tried again', async () => {
    const { write, settle, changes, failures, watched } = watching(model('a'), { taking: () => Promise.reject(new Error('A worker refused.')) });
    for (const times of [1, 2]) {
      write(model('second'));
      settle();
      await settled();
      expect([changes.length, failures.length, Object.keys(watched.reading.settings.models)]).toEqual([times, times, ['a']]);
    }
  });
});

describe('a change of the file', () => {
  test('holds once the file has been quiet for 100 ms', () => {
    const { write, happens, clock, changes, watched } = watching(model('a'));
    write('models: { half');
    happens();
    clock.advance(99);
    write(model('second'));
    happens();
    clock.advance(99);
    expect(changes).toEqual([]);
    clock.advance(1);
    expect(changes).toMatchObject([{ changed: ['models'], restart: [] }]);
    expect(Object.keys(watched.reading.settings.models)).toEqual(['second']);
  });

  test('that is bad leaves the running settings in place and is told with its line, until a good one comes', () => {
    const { write, settle, changes, failures, watched } = watching(model('a'));
    const before = watched.reading;
    write('models:\n  b: { target: [] }');
    settle();
    expect(changes).toEqual([]);
    expect(failures[0]).toBeInstanceOf(BadSettings);
    expect(failures[0]?.message).toBe('dragoman.yaml:2:8: models.b.target is not known. Did you mean targets?');
    expect(watched.reading).toBe(before);
    write(model('cc'));
    settle();
    expect(failures).toHaveLength(1);
    expect(Object.keys(watched.reading.settings.models)).toEqual(['cc']);
  });

  test('that is half good is not half taken', () => {
    const { write, settle, watched } = watching('port: 1');
    write(`${model('a')}\nnewUsers: { plan: gold }`);
    settle();
    expect(watched.reading.settings.models).toEqual({});
  });

  test('names what needs a restart, until what runs is what is written again', () => {
    const { write, settle, changes } = watching('port: 1');
    write(
      'port: 2\nhost: "::1"\ndata: elsewhere\nlogLevel: debug\nblobs: { s3: { endpoint: "https://s3.example.org", bucket: files, accessKeyId: a, secretAccessKey: b } }',
    );
    settle();
    write(`port: 2\n${model('a')}`);
    settle();
    write('port: 1');
    settle();
    expect(changes.map(({ changed, restart }) => ({ changed, restart }))).toEqual([
      { changed: ['host', 'port', 'data', 'logLevel', 'blobs'], restart: ['host', 'port', 'data', 'blobs'] },
      { changed: ['host', 'data', 'logLevel', 'models', 'blobs'], restart: ['port'] },
      { changed: ['port', 'models'], restart: [] },
    ]);
  });

  test('names what was written, and not the defaults that follow from it', () => {
    const { write, settle, changes } = watching('defaults: { speech: built-in-speech }', { env: { OPENAI_API_KEY: 'k' } });
    write(`${model('a')}\nplans: { free: {} }\ndefaults: { speech: built-in-speech }`);
    settle();
    write(`${model('a')}\nplans: { free: {} }\ndefaults: { chat: built-in }`);
    settle();
    expect(changes.map(({ changed }) => changed)).toEqual([['models', 'plans'], ['defaults']]);
  });

  test('that the command line overrules is no change', () => {
    const { write, settle, changes, read } = watching('port: 1', { port: '9' });
    write('port: 22');
    settle();
    expect(read).toHaveBeenCalledTimes(2);
    expect(changes).toEqual([]);
  });

  test('in another file of the folder is not even read', () => {
    const { cwd, settle, read } = watching('port: 1');
    writeFileSync(join(cwd, 'other.log'), 'x');
    settle();
    expect(read).toHaveBeenCalledTimes(1);
  });

  test('other files that keep changing do not put it off', () => {
    const { cwd, write, happens, clock, changes } = watching(model('a'));
    write(model('second'));
    for (let at = 0; at < 10; at++) {
      writeFileSync(join(cwd, 'other.log'), `${at}`);
      happens();
      clock.advance(10);
    }
    expect(changes).toHaveLength(1);
  });

  test('is one when it appears where there was none', () => {
    const { write, settle, changes } = watching(undefined);
    write(model('a'));
    settle();
    expect(changes).toMatchObject([{ changed: ['models'], restart: [] }]);
  });

  test('is none when it goes: the settings stay', () => {
    const { cwd, settle, changes, failures, watched } = watching(model('a'));
    rmSync(join(cwd, 'dragoman.yaml'));
    settle();
    expect(changes).toEqual([]);
    expect(failures[0]?.message).toContain('This file is gone.');
    expect(Object.keys(watched.reading.settings.models)).toEqual(['a']);
  });
});

describe('a reload', () => {
  test('reads once the file is quiet, and says so when nothing has changed', () => {
    const { write, watched, changes, clock } = watching('port: 1');
    watched.reload();
    clock.advance(100);
    write(model('a'));
    watched.reload();
    clock.advance(1000);
    expect(changes).toMatchObject([{ changed: [] }, { changed: ['port', 'models'], restart: ['port'] }]);
  });

  test('of a file that is being rewritten in place waits for the rest of it', () => {
    const { write, watched, changes, failures, clock } = watching(`${model('a')}\nplans: { old: {} }`);
    write('');
    watched.reload();
    clock.advance(99);
    write('plans: { half: {} }\n');
    clock.advance(99);
    write(`plans: { half: {} }\n${model('whole')}`);
    clock.advance(99);
    expect([changes, failures]).toEqual([[], []]);
    clock.advance(100);
    expect(changes).toHaveLength(1);
    expect(Object.keys(watched.reading.settings.models)).toEqual(['whole']);
  });

  test('of a file that is written while it is read reads it again', () => {
    const { write, watched, read, changes, failures, clock } = watching(model('a'));
    const good = read.getMockImplementation()!;
    read.mockImplementationOnce(() => {
      write('models: { torn');
      try {
        return good();
      } finally {
        write(model('whole'));
      }
    });
    watched.reload();
    clock.advance(200);
    expect(failures).toEqual([]);
    expect(changes).toHaveLength(1);
    expect(Object.keys(watched.reading.settings.models)).toEqual(['whole']);
  });

  test.each(['', ' \n\n'])('of a file that was emptied (%j) leaves the running settings and says so', (nothing) => {
    const { write, watched, changes, failures, clock } = watching(model('a'));
    write(nothing);
    watched.reload();
    clock.advance(100);
    expect(changes).toEqual([]);
    expect(failures[0]?.message).toContain('This file is empty.');
    expect(Object.keys(watched.reading.settings.models)).toEqual(['a']);
  });

  test('of a file that always was empty is no failure', () => {
    const { watched, changes, failures, clock } = watching('');
    watched.reload();
    clock.advance(100);
    expect(failures).toEqual([]);
    expect(changes).toMatchObject([{ changed: [] }]);
  });

  test('of a bad file leaves the running settings', () => {
    const { write, watched, changes, failures, clock } = watching('port: 1');
    write('port: x');
    watched.reload();
    clock.advance(100);
    expect(changes).toEqual([]);
    expect(failures.map(({ message }) => message)).toEqual(['dragoman.yaml:1:7: port must be an integer. Found "x".']);
    expect(watched.reading.settings.port).toBe(1);
  });

  test('that the server cannot take over leaves the running settings', () => {
    const cwd = folderWith(model('a'));
    const failed = vi.fn<(error: Error) => void>();
    const clock = testClock();
    const read = () => readSettings({ cwd, env: {} });
    const watched = watchSettings({
      start: read(),
      read,
      changed() {
        throw new Error('no');
      },
      failed,
      clock,
      watchFolder: () => () => {},
    });
    writeFileSync(join(cwd, 'dragoman.yaml'), model('b'));
    watched.reload();
    clock.advance(100);
    expect(failed).toHaveBeenCalledWith(new Error('no'));
    expect(Object.keys(watched.reading.settings.models)).toEqual(['a']);
  });

  test('after the end there is none, neither by the file nor by hand', () => {
    const { write, happens, clock, watched, changes, folders } = watching('port: 1');
    write('port: 2');
    happens();
    watched.close();
    clock.advance(1000);
    watched.reload();
    expect(changes).toEqual([]);
    expect(folders.size).toBe(0);
  });
});

test('every folder in which a link of the way can change is watched', () => {
  const cwd = folderWith();
  for (const name of ['etc', 'first', 'second']) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, 'first/real.yaml'), 'port: 1');
  symlinkSync('../first', join(cwd, 'etc/current'));
  symlinkSync('etc/current/real.yaml', join(cwd, 'dragoman.yaml'));
  const watched: string[] = [];
  watchSettings({
    start: readSettings({ cwd, env: {} }),
    read: () => readSettings({ cwd, env: {} }),
    changed() {},
    failed() {},
    watchFolder(folder) {
      watched.push(folder);
      return () => {};
    },
  });
  expect(watched.toSorted()).toEqual([cwd, join(cwd, 'etc'), join(cwd, 'first')].toSorted());
});

test('a folder that cannot be watched is told, and a reload still works', () => {
  const cwd = folderWith('port: 1');
  const failed = vi.fn<(error: Error) => void>();
  const changed = vi.fn<() => void>();
  const clock = testClock();
  const read = () => readSettings({ cwd, env: {} });
  const watched = watchSettings({
    start: read(),
    read,
    changed,
    failed,
    clock,
    watchFolder() {
      throw new Error('ENOSPC');
    },
  });
  expect(failed).toHaveBeenCalledWith(new Error('ENOSPC'));
  writeFileSync(join(cwd, 'dragoman.yaml'), model('a'));
  watched.reload();
  clock.advance(100);
  expect(changed).toHaveBeenCalledOnce();
});

describe('on a real disk', () => {
  /** Watches with the system's own clock and folders; each answer is the next thing that is told. */
  function really(cwd: string) {
    const told: (Change | Error)[] = [];
    let wake = () => {};
    const tell = (one: Change | Error) => {
      told.push(one);
      wake();
    };
    const read = () => readSettings({ cwd, env: {} });
    const watched = watchSettings({ start: read(), read, changed: tell, failed: tell });
    onTestFinished(() => watched.close());
    return async () => {
      while (told.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return told.shift()!;
    };
  }

  test('an editor that writes beside and renames is noticed, every time', async () => {
    const cwd = folderWith('plans: { a0: {} }');
    const next = really(cwd);
    for (const name of ['a1', 'a2', 'a3']) {
      writeFileSync(join(cwd, '.dragoman.yaml.swp'), `plans: { ${name}: {} }`);
      renameSync(join(cwd, '.dragoman.yaml.swp'), join(cwd, 'dragoman.yaml'));
      expect(await next()).toMatchObject({ changed: ['plans'], reading: { settings: { plans: { [name]: {} } } } });
    }
  });

  test('a mounted config map that swaps its folder is noticed, every time', async () => {
    const cwd = folderWith();
    const version = (name: string) => {
      mkdirSync(join(cwd, name));
      writeFileSync(join(cwd, name, 'dragoman.yaml'), `plans: { ${name}: {} }`);
      symlinkSync(name, join(cwd, '..data_tmp'));
      renameSync(join(cwd, '..data_tmp'), join(cwd, '..data'));
    };
    version('v0');
    symlinkSync('..data/dragoman.yaml', join(cwd, 'dragoman.yaml'));
    const next = really(cwd);
    for (const [name, old] of [
      ['v1', 'v0'],
      ['v2', 'v1'],
    ] as const) {
      version(name);
      rmSync(join(cwd, old), { recursive: true });
      expect(await next()).toMatchObject({ changed: ['plans'], reading: { settings: { plans: { [name]: {} } } } });
    }
  });

  test('a bad file is told, and the next good one holds', async () => {
    const cwd = folderWith('plans: { a: {} }');
    const next = really(cwd);
    writeFileSync(join(cwd, 'dragoman.yaml'), 'plans: [');
    expect(await next()).toBeInstanceOf(BadSettings);
    writeFileSync(join(cwd, 'dragoman.yaml'), 'plans: { b: {} }');
    expect(await next()).toMatchObject({ changed: ['plans'] });
  });
});
