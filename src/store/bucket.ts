import { trimEnd } from '#kit/text/trim-end';
import { AwsV4Signer } from 'aws4fetch';
import type { Clock } from '#kit/async/clock';

/** As `blobs.s3` in the settings. */
export interface Bucket {
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface BucketRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  /** Behind the name of the bucket. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Promise<Blob>;
}

/** What is sent: signed. */
export interface SignedRequest {
  readonly url: string;
  readonly method: BucketRequest['method'];
  readonly headers: Record<string, string>;
  readonly body: Blob | undefined;
}

interface BucketAnswer {
  readonly status: number;
  readonly body: { cancel(): Promise<void> } | null;
}

export interface BucketDeps<Answer> {
  readonly clock: Clock;
  readonly send: (request: SignedRequest) => Promise<Answer>;
  /** What is thrown where the last try failed. */
  readonly unreachable: (cause: unknown) => Error;
  readonly signal?: AbortSignal;
}

const tries = 3;
const waitMilliseconds = 200;

/**
 * Signs and sends; what may pass by is tried again. The bucket is in the path, not in the name of the host: every S3-compatible server knows that form. Source:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/
 * @returns asks, and gives the answer where its status is one of the good ones
 */
export function openBucket<Answer extends BucketAnswer>(
  { endpoint, region, bucket, accessKeyId, secretAccessKey }: Bucket,
  { clock, send, unreachable, signal }: BucketDeps<Answer>,
): (request: BucketRequest, good: readonly number[]) => Promise<Answer> {
  const base = `${trimEnd(endpoint, '/')}/${encodeURIComponent(bucket)}`;
  const cache = new Map<string, ArrayBuffer>(); // of keys that are good for a day
  return async ({ method, path, headers = {}, body }, good) => {
    for (let left = tries; ; left--) {
      signal?.throwIfAborted();
      const signer = new AwsV4Signer({ method, url: base + path, headers, accessKeyId, secretAccessKey, service: 's3', region: region || 'us-east-1', cache });
      const signed = await signer.sign();
      try {
        const answer = await send({ url: signed.url.href, method, headers: Object.fromEntries(signed.headers), body: await body?.() });
        if (good.includes(answer.status)) return answer;
        await drained(answer);
        throw new Error(`The bucket answered ${method} with ${answer.status}.`);
      } catch (error) {
        signal?.throwIfAborted();
        if (left <= 1) throw unreachable(error);
        await clock.sleep(waitMilliseconds * (tries - left + 1), signal);
      }
    }
  };
}

/** The connection is free for the next. */
export const drained = (answer: Pick<BucketAnswer, 'body'>) => answer.body?.cancel().catch(() => {});
