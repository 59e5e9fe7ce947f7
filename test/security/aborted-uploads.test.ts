/* Clients that begin an upload and leave, and users who send more than their plan has room for. */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { idOf, newDataset } from '../api/datasets/people.ts';
import { plainText } from '../api/datasets/following.ts';
import { person, visitorsOf } from '../api/native/visitors.ts';
import { proves } from '../support/proves.ts';
import { startTestServer } from '../support/server.ts';

const all = 1000;
const atOnce = 50;

test(proves('U-09', 'a thousand uploads that break off leave no file behind, and what the plan has no room for is 413'), { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-aborted-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const server = await startTestServer({ folder, convert: plainText });
  onTestFinished(server.close);
  const ada = await person(visitorsOf(server));
  const id = await idOf(ada, await newDataset(ada, 'aborted'));
  const [uploads, blobs] = [join(folder, 'data', 'uploads'), join(folder, 'data', 'blobs')];
  const filesIn = (path: string) => readdirSync(path, { recursive: true, withFileTypes: true }).flatMap((one) => (one.isFile() ? [one.name] : []));

  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n';
  const ways = [
    { path: '/server/file', type: 'multipart/form-data; boundary=b', head },
    { path: '/server/train-with-file', type: 'multipart/form-data; boundary=b', head },
    { path: `/server/mine/datasets/${id}/files?filename=a.txt`, type: 'application/octet-stream', head: '' },
  ];
  let most = 0;
  const broken = async (number: number) => {
    const { path, type, head: first } = ways[number % ways.length]!;
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => {});
    await once(socket, 'connect');
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nx-access-tokens: ${ada.key}\r\ncontent-type: ${type}\r\ncontent-length: 10000000\r\n\r\n${first}`);
    for (let pieces = 0; pieces < 5 + (number % 20); pieces++) {
      socket.write(Buffer.alloc(50_000, 97));
      await sleep(5);
    }
    most = Math.max(most, filesIn(uploads).length);
    if (number % 2 === 0) socket.destroy();
    else socket.resetAndDestroy();
  };
  for (let begun = 0; begun < all; begun += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, at) => broken(begun + at)));
  expect(most).toBeGreaterThan(0);
  await expect.poll(() => filesIn(uploads), { timeout: 60_000 }).toEqual([]);
  expect(filesIn(blobs)).toEqual([]);
  expect((await ada.ask('GET', `/server/mine/datasets/${id}/files`)).body['items']).toEqual([]);

  await visitorsOf(server).admin('PATCH', `/server/admin/users/${ada.id}`, { storageBytes: 100_000 });
  const send = (size: number) =>
    ada.ask('POST', `/server/mine/datasets/${id}/files?filename=${size}.txt`, 'x'.repeat(size), { headers: { 'content-type': 'application/octet-stream' } });
  expect((await send(60_000)).status).toBe(202);
  const refused = await send(40_001);
  expect([refused.status, refused.body['error']]).toEqual([413, expect.stringContaining('The plan has room for 100000 bytes of files: 60000 are taken')]);
  expect((await send(40_000)).status).toBe(202);
});
