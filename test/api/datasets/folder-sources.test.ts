/* Datasets of administrators that follow a folder of this machine. */
import { chmod, mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { onBothDatabases, type Place } from '../../support/databases.ts';
import { person } from '../native/visitors.ts';
import { following, plainText } from './following.ts';
import { idOf, newDataset, twoPeople } from './people.ts';

const long = 180_000;

async function begun(place: Place) {
  const home = await mkdtemp(join(tmpdir(), 'dragoman-folder-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const folder = join(home, 'listed');
  await mkdir(join(folder, 'inner'), { recursive: true });
  const people = await twoPeople(place, { convert: plainText, yaml: `sources: { folders: ["${folder}"] }\n` });
  const root = await person(people.all, { role: 'admin' });
  const datasetId = await idOf(root, await newDataset(root, 'followed'));
  return { ...people, root, home, folder, datasetId, sources: following(root, datasetId) };
}

onBothDatabases('folder sources', ({ place }) => {
  test('files are taken, skipped while unchanged, renewed and deleted; links, pipes and hidden files are not', { timeout: long }, async () => {
    const { all, root, home, folder, datasetId, sources } = await begun(await place());
    await writeFile(join(home, 'secret.txt'), 'A secret outside');
    await writeFile(join(folder, 'a.txt'), 'The first text');
    await writeFile(join(folder, 'inner', 'a.txt'), 'The second text');
    await writeFile(join(folder, '.hidden'), 'Hidden');
    await symlink(join(home, 'secret.txt'), join(folder, 'link.txt'));
    await symlink(home, join(folder, 'up'));
    execFileSync('sh', ['-c', 'mkfifo "$0"', join(folder, 'pipe.txt')]);
    const { id, ...first } = await sources.add({ type: 'folder', folder });
    expect(first).toMatchObject({ state: 'done', seen: 2, changed: 2, deleted: 0 });
    expect(first.failures.toSorted((a, b) => (a.what < b.what ? -1 : 1))).toEqual(
      ['link.txt', 'up'].map((what) => ({ what, reason: 'It is a symbolic link, which is not followed.' })),
    );
    const names = () => sources.files().then((all) => all.map(({ filename }) => filename).toSorted());
    expect(await names()).toEqual(['a.txt', expect.stringMatching(/^inner-a-[0-9a-f]{8}\.txt$/)]);
    expect(await sources.sync(id)).toMatchObject({ seen: 2, changed: 0, deleted: 0 });

    await writeFile(join(folder, 'a.txt'), 'The first text, changed');
    await unlink(join(folder, 'inner', 'a.txt'));
    expect(await sources.sync(id)).toMatchObject({ seen: 1, changed: 1, deleted: 1 });
    expect(await names()).toEqual(['a.txt']);

    // a file that is put in by hand under the same name is the user's: it is neither replaced nor deleted
    const put = await fetch(`${all.server.url}/server/mine/datasets/${datasetId}/files?filename=a.txt`, {
      method: 'POST',
      body: 'By hand',
      headers: { 'x-access-tokens': root.key },
    });
    expect(put.status).toBe(202);
    expect(await sources.files()).toMatchObject([{ filename: 'a.txt', sourceId: null }]);
    expect(await sources.sync(id)).toMatchObject({ changed: 0, failures: [{}, {}, { what: 'a.txt', reason: 'The dataset has another file of this name.' }] });
    await unlink(join(folder, 'a.txt'));
    expect(await sources.sync(id)).toMatchObject({ seen: 0, deleted: 1 });
    expect(await names()).toEqual(['a.txt']);
  });

  test('a folder that is away, unreadable or replaced by an empty one deletes nothing; one that was emptied deletes all', { timeout: long }, async () => {
    const { home, folder, sources } = await begun(await place());
    await writeFile(join(folder, 'a.txt'), 'The first text');
    await writeFile(join(folder, 'inner', 'b.txt'), 'The second text');
    const { id } = await sources.add({ type: 'folder', folder });
    await rename(folder, join(home, 'away'));
    expect(await sources.sync(id)).toMatchObject({ state: 'failed', seen: 2, deleted: 0 });
    await mkdir(folder); // as the place of a file system that is not mounted
    expect(await sources.sync(id)).toMatchObject({ state: 'failed', seen: 2, deleted: 0, failures: [{ reason: expect.stringContaining('empty') as string }] });
    await rm(folder, { recursive: true });
    await rename(join(home, 'away'), folder);
    if (process.getuid?.() !== 0) {
      await chmod(join(folder, 'inner'), 0);
      expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 2, deleted: 0, failures: [{ what: 'inner' }] });
      await chmod(join(folder, 'inner'), 0o700);
    }
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 2, changed: 0, deleted: 0, failures: [] });
    await rm(join(folder, 'inner'), { recursive: true });
    await unlink(join(folder, 'a.txt'));
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 0, deleted: 2 });
  });

  test('only what the operator lists is followed, by whatever name, and for administrators alone', { timeout: long }, async () => {
    const { all, ada, bob, root, home, folder, sources } = await begun(await place());
    await writeFile(join(home, 'secret.txt'), 'A secret outside');
    await symlink(home, join(folder, 'way-out'));
    await writeFile(join(folder, 'file.txt'), 'A file');
    for (const path of [
      home,
      '/',
      '/etc',
      'listed',
      `${folder}/../`,
      `${folder}/..`,
      `${folder}/inner/../..`,
      `${folder}-more`,
      join(folder, 'way-out'),
      join(folder, 'nothing'),
      join(folder, 'file.txt'),
      `${folder}\u0000`,
    ]) {
      const { status, body } = await root.ask('POST', sources.root, { type: 'folder', folder: path });
      expect([path, status, body['response']]).toEqual([path, 400, expect.stringMatching(/^folder /)]);
    }
    const adas = following(ada, await idOf(ada, await newDataset(ada, 'of a user')));
    expect((await ada.ask('POST', adas.root, { type: 'folder', folder })).status).toBe(403);
    const narrowed = await person(all, { role: 'admin' }, { scopes: ['datasets'] });
    const theirs = following(narrowed, await idOf(narrowed, await newDataset(narrowed, 'by a narrow key')));
    expect((await narrowed.ask('POST', theirs.root, { type: 'folder', folder })).status).toBe(403);
    const { id } = await sources.add({ type: 'folder', folder: join(folder, 'inner') });
    // who may edit the dataset, and is no administrator, does not make the folder theirs
    await root.ask('PUT', sources.root.replace('/sources', '/grants'), { items: [{ user: bob.id, right: 'edit' }] });
    expect((await bob.ask('PATCH', `${sources.root}/${id}`, { everyHours: 1 })).status).toBe(403);
    await writeFile(join(folder, 'inner', 'new.txt'), 'New');
    await all.admin('PATCH', `/server/admin/users/${root.id}`, { role: 'user' });
    expect(await sources.sync(id)).toMatchObject({ state: 'failed', seen: 0 });
    await all.admin('PATCH', `/server/admin/users/${root.id}`, { role: 'admin' });
    await all.server.change('');
    expect(await sources.sync(id)).toMatchObject({ state: 'failed', seen: 0, failures: [{ reason: 'The folder is not within one of sources.folders.' }] });
  });
});
