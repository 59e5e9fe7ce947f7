import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { shippedImage, unpack } from '#store/empty-database';
import { makeImage } from '../../test/support/make-empty-database.ts';
import { openEngine } from '#store/engine';
import { silent } from '#store/log';

test('the image of an empty database is what the installed PGlite makes', async () => {
  const root = await mkdtemp(join(tmpdir(), 'dragoman-image-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const catalogue = async (image: Uint8Array, name: string) => {
    const folder = join(root, name);
    await unpack(image, folder);
    const engine = await openEngine({ start: { folder, settings: [] }, clock: systemClock, log: silent });
    const { rows } = await engine.send(
      `select version(), (select md5(string_agg(p::text, '' order by p.oid)) from pg_proc p) as functions, (select md5(string_agg(t::text, '' order by t.oid)) from pg_type t) as types,
        (select string_agg(relname || relkind::text || relnatts, ',' order by oid) from pg_class) as relations, (select string_agg(datname, ',') from pg_database) as databases`,
      [],
      10_000,
    );
    await engine.close();
    return rows[0];
  };
  const fresh = await makeImage();
  const shipped = await readFile(shippedImage);
  expect(await catalogue(shipped, 'shipped')).toEqual(await catalogue(fresh, 'fresh'));
  expect(shipped.length).toBeLessThan(2_000_000);
}, 120_000);
