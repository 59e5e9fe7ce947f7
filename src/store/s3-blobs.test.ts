import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { s3Blobs } from '#store/s3-blobs';
import { testClock } from '../../test/support/fakes/clock.ts';
import { isSigned, keys, sha256 } from '../../test/support/fakes/signed.ts';

/** A bucket in memory that refuses what is not signed. `failures`: how many of the next requests fail. */
async function bucket() {
  const objects = new Map<string, { content: Buffer; at: number }>();
  const state = { objects, failures: 0, refused: 0, page: 2 };
  const server = createServer((request, answer) => {
    void buffer(request).then((content) => {
      const url = new URL(request.url ?? '', 'http://x');
      const name = url.pathname.replace(/^\/files\/?/, '');
      const said = request.headers['x-amz-content-sha256'];
      if (state.failures > 0 && state.failures-- > 0) return answer.writeHead(503).end();
      if (!isSigned(request) || (request.method === 'PUT' && said !== sha256(content))) {
        state.refused++;
        return answer.writeHead(403).end();
      }
      const found = objects.get(name);
      if (request.method === 'PUT') {
        objects.set(name, { content, at: Date.now() });
        return answer.end();
      }
      if (request.method === 'DELETE') {
        objects.delete(name);
        return answer.writeHead(204).end();
      }
      if (name === '') return answer.end(listed(url));
      if (!found) return answer.writeHead(404).end();
      return answer.writeHead(200, { 'content-length': found.content.length, 'last-modified': new Date(found.at).toUTCString() }).end(found.content);
    });
  });
  const listed = (url: URL) => {
    const after = url.searchParams.get('continuation-token') ?? '';
    const all = [...objects].filter(([name]) => name.startsWith(url.searchParams.get('prefix') ?? '') && name > after).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const part = all.slice(0, state.page);
    const more = part.length < all.length;
    return `<?xml version="1.0"?><ListBucketResult><IsTruncated>${more}</IsTruncated>${part
      .map(([name, { at }]) => `<Contents><Key>${name}</Key><LastModified>${new Date(at).toISOString()}</LastModified></Contents>`)
      .join('')}${more ? `<NextContinuationToken>${part.at(-1)![0]}</NextContinuationToken>` : ''}</ListBucketResult>`;
  };
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-s3-'));
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = (more: object = {}) => s3Blobs({ ...keys, endpoint, ...more }, { folder, clock: systemClock });
  return { state, folder, open, blobs: await open() };
}

test('blobs are objects under their hash, with a signature over what was sent, and nothing stays on the disk', async () => {
  const { state, folder, blobs } = await bucket();
  const bytes = randomBytes(300_000);
  const id = sha256(bytes);
  expect(await blobs.put(bytes, 1e6)).toEqual({ id, size: 300_000 });
  expect([...state.objects.keys()]).toEqual([`blobs/${id}`]);
  const { size, content } = await blobs.get(id);
  expect([size, (await buffer(content)).equals(bytes)]).toEqual([300_000, true]);
  expect(await readdir(join(folder, 'unfinished'))).toEqual([]);
  await expect(blobs.get(sha256(Buffer.from('x')))).rejects.toMatchObject({ code: 'not-found' });
  await expect(blobs.get('../../secret')).rejects.toMatchObject({ code: 'not-found' });
  await expect(blobs.put(Buffer.alloc(11), 10)).rejects.toMatchObject({ code: 'too-large' });
  expect(state.refused).toBe(0);
});

test('a bucket that fails for a moment is asked again; one that refuses or is away is a refusal that may be tried later', async () => {
  const { state, open, blobs } = await bucket();
  state.failures = 2;
  const { id } = await blobs.put(Buffer.from('kept'), 10);
  expect(await buffer((await blobs.get(id)).content)).toEqual(Buffer.from('kept'));
  await expect((await open({ secretAccessKey: 'wrong' })).get(id)).rejects.toMatchObject({ code: 'overloaded' });
  await expect((await open({ endpoint: 'http://127.0.0.1:1' })).put(Buffer.from('x'), 10)).rejects.toMatchObject({ code: 'overloaded' });
});

test('a bucket that takes requests and never answers is a refusal that may be tried later', async () => {
  const server = createServer(() => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-s3-'));
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  });
  const clock = testClock(Date.now());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const blobs = await s3Blobs({ ...keys, endpoint }, { folder, clock });
  for (const ask of [() => blobs.put(Buffer.from('kept'), 10), () => blobs.get(sha256(Buffer.from('kept')))]) {
    let end = '';
    const answer = ask().catch((error: { code: string }) => (end = error.code));
    await expect.poll(() => (clock.advance(5000), end)).toBe('overloaded');
    await answer;
  }
});

test('what nothing names goes once it is old, page by page of the list', async () => {
  const { state, blobs } = await bucket();
  const ids: string[] = [];
  for (let at = 0; at < 5; at++) ids.push((await blobs.put(Buffer.from(`blob ${at}`), 100)).id);
  for (const object of state.objects.values()) object.at -= 3_600_000;
  const young = await blobs.put(Buffer.from('young'), 100);
  state.objects.set('blobs/of-somebody-else', { content: Buffer.alloc(1), at: 0 });
  expect(await blobs.sweep(1_800_000, (asked) => Promise.resolve(new Set(asked.filter((id) => id === ids[2]))))).toBe(4);
  expect([...state.objects.keys()].toSorted()).toEqual([`blobs/${ids[2]}`, `blobs/${young.id}`, 'blobs/of-somebody-else'].toSorted());
});
