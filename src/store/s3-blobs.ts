import { trimEnd } from '#kit/text/trim-end';
import { openAsBlob } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { AwsV4Signer } from 'aws4fetch';
import { fetch, type Dispatcher, type Response } from 'undici';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { missing, openDrafts, writeDraft, type Blobs } from '#store/blobs';
import { hasCode } from '#store/files';
import { overloaded } from '#store/sql-error';

/** As `blobs.s3` in the settings. */
export interface Bucket {
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface S3Deps {
  /** For what is on its way to the bucket. */
  readonly folder: string;
  readonly clock: Clock;
  /** With the proxy and the certificates of the settings. */
  readonly dispatcher?: Dispatcher;
}

interface Asked {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  /** Behind the name of the bucket. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Promise<Blob>;
}

const prefix = 'blobs/';
const tries = 3;
const waitMilliseconds = 200;
/** Of an answer that is a list. */
const mostListBytes = 4 * 2 ** 20;

/**
 * Blobs as objects `blobs/<id>` of a bucket, by the path (not by a host name of the bucket): every S3-compatible server knows that form. A content goes through a
 * draft on the disk, because its hash is its name. Source: https://docs.aws.amazon.com/AmazonS3/latest/API/
 */
export async function s3Blobs(bucket: Bucket, { folder, clock, dispatcher }: S3Deps): Promise<Blobs> {
  const drafts = await openDrafts(folder, clock);
  const ask = asker(bucket, clock, dispatcher);
  const pathOf = (id: string) => {
    if (!/^[0-9a-f]{64}$/.test(id)) throw missing();
    return `/${prefix}${id}`;
  };
  const remove = async (id: string) => {
    await drained(await ask({ method: 'DELETE', path: pathOf(id) }, [200, 204, 404]));
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
        throw hasCode(error, 'ENOSPC') ? overloaded('The disk is full.', error) : error;
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
    remove,
    async sweep(age, named) {
      let gone = 0;
      const before = clock.now() - age;
      for await (const objects of objectsIn(ask)) {
        const old = objects.flatMap(({ id, at }) => (at <= before ? [id] : []));
        const kept = old.length > 0 ? await named(old) : new Set();
        for (const id of old) {
          if (kept.has(id) || !(await isOlder(ask, pathOf(id), before))) continue; // put anew in between
          await remove(id);
          gone++;
        }
      }
      return gone;
    },
  };
}

type Ask = (asked: Asked, good: readonly number[]) => Promise<Response>;

/** Signs and sends; what may pass by is tried again. @throws Fault `overloaded` */
function asker({ endpoint, region, bucket, accessKeyId, secretAccessKey }: Bucket, clock: Clock, dispatcher: Dispatcher | undefined): Ask {
  const base = `${trimEnd(endpoint, '/')}/${encodeURIComponent(bucket)}`;
  const cache = new Map<string, ArrayBuffer>(); // of keys that are good for a day
  return async ({ method, path, headers = {}, body }, good) => {
    for (let left = tries; ; left--) {
      const signer = new AwsV4Signer({ method, url: base + path, headers, accessKeyId, secretAccessKey, service: 's3', region: region || 'us-east-1', cache });
      const signed = await signer.sign();
      try {
        const answer = await fetch(signed.url, {
          method,
          headers: Object.fromEntries(signed.headers),
          ...(body ? { body: await body() } : {}),
          ...(dispatcher ? { dispatcher } : {}),
        });
        if (good.includes(answer.status)) return answer;
        await drained(answer);
        throw new Error(`The bucket answered ${method} with ${answer.status}.`);
      } catch (error) {
        if (left <= 1) throw overloaded('The storage of files cannot be reached.', error);
        await clock.sleep(waitMilliseconds * (tries - left + 1));
      }
    }
  };
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

/** The connection is free for the next. */
const drained = (answer: Response) => answer.body?.cancel().catch(() => {});
