import { openAsBlob } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fetch, type Dispatcher, type Response } from 'undici';
import type { Clock } from '#kit/async/clock';
import { timed } from '#kit/async/timed';
import { randomText } from '#kit/crypto/ids';
import { missing, openDrafts, writeDraft, type Blobs } from '#store/blobs';
import { drained, openBucket, type Bucket, type BucketRequest } from '#store/bucket';
import { asWriteFault } from '#store/files';
import { overloaded } from '#store/sql-error';

export interface S3Deps {
  /** For what is on its way to the bucket. */
  readonly folder: string;
  readonly clock: Clock;
  /** With the proxy and the certificates of the settings. */
  readonly dispatcher?: Dispatcher;
}

const prefix = 'blobs/';
/** A try without the head of an answer ends after this, plus the time its body may take to send. */
const silentMilliseconds = 10_000;
const bytesInAMillisecond = 256;
/** Of an answer that is a list. */
const mostListBytes = 4 * 2 ** 20;

/** Blobs as objects `blobs/<id>` of a bucket. A content goes through a draft on the disk, because its hash is its name. */
export async function s3Blobs(bucket: Bucket, { folder, clock, dispatcher }: S3Deps): Promise<Blobs> {
  const drafts = await openDrafts(folder, clock);
  const ask = asker(bucket, clock, dispatcher);
  const pathOf = (id: string) => {
    if (!/^[0-9a-f]{64}$/.test(id)) throw missing();
    return `/${prefix}${id}`;
  };

  return {
    async put(content, limit) {
      const draft = join(drafts, randomText(22));
      try {
        const blob = await writeDraft(draft, content, limit);
        const headers = { 'x-amz-content-sha256': blob.id, 'content-type': 'application/octet-stream' };
        await drained(await ask({ method: 'PUT', path: pathOf(blob.id), headers, body: () => openAsBlob(draft) }, [200]));
        return blob;
      } catch (error) {
        throw asWriteFault(error);
      } finally {
        await rm(draft, { force: true });
      }
    },
    async get(id) {
      const answer = await ask({ method: 'GET', path: pathOf(id) }, [200, 404]);
      if (answer.status === 404 || !answer.body) {
        await drained(answer);
        throw missing();
      }
      return { id, size: Number(answer.headers.get('content-length') ?? 0), content: Readable.fromWeb(answer.body) };
    },
    async sweep(age, named) {
      let gone = 0;
      const before = clock.now() - age;
      for await (const objects of objectsIn(ask)) {
        const old = objects.flatMap(({ id, at }) => (at <= before ? [id] : []));
        const kept = old.length > 0 ? await named(old) : new Set();
        for (const id of old) {
          if (kept.has(id) || !(await isOlder(ask, pathOf(id), before))) continue; // put anew in between
          await drained(await ask({ method: 'DELETE', path: pathOf(id) }, [200, 204, 404]));
          gone++;
        }
      }
      return gone;
    },
  };
}

type Ask = (asked: BucketRequest, good: readonly number[]) => Promise<Response>;

/** @throws Fault `overloaded` */
function asker(bucket: Bucket, clock: Clock, dispatcher: Dispatcher | undefined): Ask {
  return openBucket(bucket, {
    clock,
    send: ({ url, method, headers, body }) =>
      timed({ clock, milliseconds: silentMilliseconds + (body?.size ?? 0) / bytesInAMillisecond, late: new Error('The bucket does not answer.') }, (signal) =>
        fetch(url, { method, headers, signal, ...(body ? { body } : {}), ...(dispatcher ? { dispatcher } : {}) }),
      ),
    unreachable: (cause) => overloaded('The storage of files cannot be reached.', cause),
  });
}

async function* objectsIn(ask: Ask): AsyncGenerator<readonly { readonly id: string; readonly at: number }[]> {
  for (let token: string | undefined; ;) {
    const path = `?list-type=2&max-keys=1000&prefix=${encodeURIComponent(prefix)}${token === undefined ? '' : `&continuation-token=${encodeURIComponent(token)}`}`;
    const answer = await ask({ method: 'GET', path }, [200]);
    const xml = (await answer.text()).slice(0, mostListBytes);
    yield xml
      .split('<Contents>')
      .slice(1)
      .flatMap((one) => {
        const id = /<Key>blobs\/([0-9a-f]{64})<\/Key>/.exec(one)?.[1];
        const at = Date.parse(/<LastModified>([^<]+)<\/LastModified>/.exec(one)?.[1] ?? '');
        return id !== undefined && Number.isFinite(at) ? [{ id, at }] : [];
      });
    token = /<IsTruncated>true</.test(xml) ? /<NextContinuationToken>([^<]+)</.exec(xml)?.[1]?.replaceAll('&amp;', '&') : undefined;
    if (token === undefined) return;
  }
}

async function isOlder(ask: Ask, path: string, before: number): Promise<boolean> {
  const answer = await ask({ method: 'HEAD', path }, [200, 404]);
  await drained(answer);
  return answer.status === 200 && Date.parse(answer.headers.get('last-modified') ?? '') <= before;
}
