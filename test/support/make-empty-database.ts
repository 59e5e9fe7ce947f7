/* Makes empty-database.br anew, after a change of PGlite: `node --conditions=dragoman-source test/support/make-empty-database.ts`. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { systemClock } from '#kit/async/clock';
import { shippedImage, type Entry, type Image } from '#store/empty-database';
import { openEngine } from '#store/engine';
import { silent } from '#store/log';

if (import.meta.main) await writeFile(shippedImage, await makeImage());

/** A fresh database of the installed PGlite, as the image of it. */
export async function makeImage(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-image-'));
  try {
    const madeBy = await create(folder);
    const found = await readdir(folder, { recursive: true, withFileTypes: true });
    const all = found.map((one) => ({ path: join(one.parentPath, one.name).slice(folder.length + 1), file: one.isFile() }));
    all.sort((a, b) => (a.path < b.path ? -1 : 1));
    const files = all.filter(({ path, file }) => file && path !== 'postmaster.pid');
    const contents = await Promise.all(files.map(({ path }) => readFile(join(folder, path))));
    const entries: Entry[] = [
      ...all.filter(({ file }) => !file).map(({ path }) => ({ path })),
      ...files.map(({ path }, at) => ({ path, size: contents[at]!.length })),
    ];
    return await pack({ madeBy, entries }, contents);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns who made it */
async function create(folder: string): Promise<string> {
  const engine = await openEngine({ start: { folder, settings: [], create: ['--wal-segsize=4'] }, clock: systemClock, log: silent });
  const run = (text: string) => engine.send(text, [], 60_000);
  try {
    await run("update pg_database set datistemplate = false where datname <> 'postgres'");
    await run('drop database template0');
    await run('drop database template1');
    await run('vacuum (freeze, analyze)');
    await run('checkpoint');
    return (await run('select version()')).rows[0]!['version'] as string;
  } finally {
    await engine.close();
  }
}

/** The reverse of unpacking; folders stand before what is in them. */
function pack(image: Image, contents: readonly Uint8Array[]): Promise<Buffer> {
  const { BROTLI_PARAM_LGWIN, BROTLI_MAX_WINDOW_BITS } = constants;
  const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(image)}\0`), ...contents]);
  return promisify(brotliCompress)(bytes, { params: { [BROTLI_PARAM_LGWIN]: BROTLI_MAX_WINDOW_BITS } }); // the copies of one catalogue lie 8 MB apart: only a long window finds them
}
