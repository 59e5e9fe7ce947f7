/* Datasets that follow a bucket: a fake one on this machine under a public name, which refuses what is not signed. */
import { expect, onTestFinished, test } from 'vitest';
import { onBothDatabases, type Place } from '../../support/databases.ts';
import { openBucket } from '../../support/fakes/bucket.ts';
import { keys } from '../../support/fakes/signed.ts';
import { outsideOf, publicAddress } from '../../support/fakes/web.ts';
import { following, plainText } from './following.ts';
import { idOf, newDataset, twoPeople } from './people.ts';

const long = 180_000;

async function begun(place: Place) {
  const bucket = await openBucket('127.0.0.2');
  onTestFinished(() => bucket.close());
  const people = await twoPeople(place, { convert: plainText, outside: outsideOf(() => [publicAddress], '127.0.0.2') });
  const datasetId = await idOf(people.ada, await newDataset(people.ada, 'followed'));
  const given = { endpoint: `http://s3.example:${bucket.port}`, ...keys };
  return { ...people, bucket, given, datasetId, sources: following(people.ada, datasetId) };
}

onBothDatabases('bucket sources', ({ place }) => {
  test('the objects under a prefix are taken, skipped while unchanged, renewed and deleted; the keys are never shown', { timeout: long }, async () => {
    const { ada, bob, bucket, given, datasetId, sources } = await begun(await place());
    bucket.objects
      .set('docs/a.txt', 'The first text').set('docs/b + ü&.md', 'The second text').set('docs/c/a.txt', 'The third text')
      .set('docs/folder/', '').set('docs/empty.txt', '').set('other/d.txt', 'Not under the prefix'); // prettier-ignore
    await ada.ask('POST', '/server/mine/secrets', { name: 'BUCKET', value: keys.secretAccessKey });
    const wanted = { ...given, prefix: 'docs/', secretAccessKey: '{{secret.BUCKET}}' };
    const made = await ada.ask('POST', sources.root, { type: 'bucket', bucket: wanted });
    expect(made.body['bucket']).toEqual({ endpoint: `${given.endpoint}/`, region: keys.region, bucket: 'files', prefix: 'docs/' });
    const id = made.body['id'] as number;
    expect(await sources.ended(id)).toMatchObject({
      state: 'done',
      seen: 3,
      changed: 3,
      deleted: 0,
      failures: [{ what: 'docs/empty.txt', reason: 'It is empty.' }],
    });
    const names = (await sources.files()).map(({ filename }) => filename);
    expect(names).toEqual(
      [/^docs-a-[0-9a-f]{8}\.txt$/, /^docs-b \+ ü&-[0-9a-f]{8}\.md$/, /^docs-c-a-[0-9a-f]{8}\.txt$/].map((one) => expect.stringMatching(one) as string),
    );
    const shown = JSON.stringify([made.body, (await ada.ask('GET', sources.root)).body, (await ada.ask('GET', '/server/mine/jobs')).body]);
    for (const secret of [keys.accessKeyId, keys.secretAccessKey, 'secret.BUCKET']) expect(shown).not.toContain(secret);

    bucket.asked.length = 0;
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 3, changed: 0 });
    expect(bucket.asked).toEqual(['docs/empty.txt']);
    bucket.objects.set('docs/a.txt', 'The first text, once more').delete('docs/c/a.txt');
    bucket.objects.delete('docs/empty.txt');
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 2, changed: 1, deleted: 1, failures: [] });

    // whoever changes where it is gives the keys anew: those of another do not go elsewhere
    await ada.ask('PUT', `/server/mine/datasets/${datasetId}/grants`, { items: [{ user: bob.id, right: 'edit' }] });
    const elsewhere = { endpoint: 'http://evil.example', bucket: 'files' };
    expect((await bob.ask('PATCH', `${sources.root}/${id}`, { bucket: elsewhere })).status).toBe(400);
    expect((await bob.ask('PATCH', `${sources.root}/${id}`, { bucket: { ...wanted, prefix: 'other/' } })).status).toBe(200);
    expect(await sources.ended(id)).toMatchObject({ state: 'failed', seen: 2, failures: [{ reason: expect.stringContaining('BUCKET') as string }] }); // it is no secret of his
    expect((await bob.ask('PATCH', `${sources.root}/${id}`, { bucket: { ...given, prefix: 'other/' } })).status).toBe(200);
    expect(await sources.ended(id)).toMatchObject({ state: 'done', seen: 1, changed: 1, deleted: 2 });
  });

  test('room of the plan is asked for before a file is fetched, and bounds what is fetched', { timeout: long }, async () => {
    const { all, ada, bucket, given, sources } = await begun(await place());
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { storageBytes: 1000 });
    bucket.objects.set('a.txt', 'a'.repeat(400)).set('b.txt', 'b'.repeat(700)).set('c.txt', 'c'.repeat(600));
    const room = (used: number) => `The plan has room for 1000 bytes of files, and ${used} are taken.`;
    const { id, ...first } = await sources.add({ type: 'bucket', bucket: given });
    expect(first).toMatchObject({ state: 'done', seen: 2, changed: 2, failures: [{ what: 'b.txt', reason: room(400) }] });
    expect(bucket.asked).toEqual(['a.txt', 'c.txt']);

    // a list that lies about a size: it is fetched no further than there is room
    bucket.objects.delete('c.txt');
    bucket.objects.delete('b.txt');
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 1, deleted: 1 });
    let sent = 0;
    bucket.instead = (key) => (key === 'lies.txt' ? ((sent += 1), { status: 200, body: 'x'.repeat(5_000_000) }) : undefined);
    bucket.objects.set('lies.txt', 'x');
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 1, failures: [{ what: 'lies.txt', reason: room(400) }] });
    expect(sent).toBe(1);

    // what is kept is looked at again though nothing more fits, and stays where it is the same
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { storageBytes: 400 });
    bucket.instead = undefined;
    bucket.objects.delete('lies.txt');
    bucket.objects.set('d.txt', 'd');
    bucket.asked.length = 0;
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 1, changed: 0, failures: [{ what: 'd.txt' }] });
    expect(bucket.asked).toEqual([]);
    bucket.objects.set('a.txt', 'A'.repeat(400));
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 1, changed: 0, failures: [{ what: 'a.txt' }, { what: 'd.txt' }] });
    expect(bucket.asked).toEqual(['a.txt']);
    expect((await sources.files()).map(({ state }) => state)).toEqual(['done']);
  });

  test('who changes what a dataset follows is in the audit trail, without the keys', { timeout: long }, async () => {
    const { all, ada, bucket, given, datasetId, sources } = await begun(await place());
    bucket.objects.set('a.txt', 'The first text');
    const { id } = await sources.add({ type: 'bucket', bucket: given });
    await sources.sync(id);
    await ada.ask('PATCH', `${sources.root}/${id}`, { everyHours: 3 });
    await ada.ask('PATCH', `${sources.root}/${id}`, { bucket: { ...given, accessKeyId: 'another', secretAccessKey: 'secret-words' } });
    await ada.ask('DELETE', `${sources.root}/${id}`);
    const { body } = await all.admin('GET', '/server/admin/audit?targetKind=dataset-source');
    const items = body['items'] as { action: string; actor: { userId: number }; target: { id: string }; changed: Record<string, unknown> }[];
    expect(items.map(({ action, actor, target }) => [action, actor.userId, target.id])).toEqual(
      ['delete', 'change', 'change', 'sync', 'create'].map((action) => [`dataset-source.${action}`, ada.id, String(id)]),
    );
    expect(items.at(-1)!.changed).toMatchObject({ datasetId: { to: datasetId }, type: { to: 'bucket' }, worksFor: { to: ada.id } });
    expect(items[2]!.changed).toEqual({ everyHours: { from: null, to: 3 } });
    expect(items[1]!.changed).toEqual({ keys: { to: 'new' } });
    expect(JSON.stringify(items)).not.toMatch(new RegExp(`secret-words|${keys.secretAccessKey}`));
  });

  test('a bucket that fails, lies or stops in the middle of its list deletes nothing', { timeout: long }, async () => {
    const { bucket, given, sources } = await begun(await place());
    for (let number = 0; number < 5; number++) bucket.objects.set(`${number}.txt`, `Text ${number}`);
    const { id, ...first } = await sources.add({ type: 'bucket', bucket: given });
    expect(first).toMatchObject({ state: 'done', seen: 5, changed: 5 });
    const answers: [name: string, instead: NonNullable<typeof bucket.instead>][] = [
      ['refuses', () => ({ status: 403 })],
      ['is away', () => ({ status: 503 })],
      ['stops in the middle', (key, query) => (key === '' && query.has('continuation-token') ? { status: 500 } : undefined)],
      [
        'lists without end',
        (key) =>
          key === ''
            ? { status: 200, body: '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>' }
            : undefined,
      ],
      ['is cut short', (key) => (key === '' ? { status: 200, body: '<ListBucketResult><IsTruncated>false</IsTruncated>' } : undefined)],
      [
        'expands',
        (key) =>
          key === '' ? { status: 200, body: '<!DOCTYPE a [<!ENTITY x "y">]><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>' } : undefined,
      ],
      ['is a page', (key) => (key === '' ? { status: 200, body: '<html><body>Welcome</body></html>' } : undefined)],
    ];
    for (const [name, instead] of answers) {
      bucket.instead = instead;
      expect([name, await sources.sync(id)]).toMatchObject([name, { state: 'failed', seen: 5, deleted: 0, failures: [{ what: 'files/' }] }]);
    }
    bucket.instead = (key) => (key === '3.txt' ? { status: 503 } : undefined);
    bucket.objects.set('3.txt', 'Another text').delete('4.txt');
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 4, changed: 0, deleted: 1, failures: [{ what: '3.txt' }] });
    bucket.instead = undefined;
    expect(await sources.sync(id)).toMatchObject({ state: 'done', seen: 4, changed: 1, failures: [] });
    bucket.refused = 0;
    expect(await sources.add({ type: 'bucket', bucket: { ...given, secretAccessKey: 'wrong' } })).toMatchObject({ state: 'failed', seen: 0 });
    expect(bucket.refused).toBe(3);
    expect(await sources.files()).toHaveLength(4);
  });
});
