import { BadXml, readXml } from '#kit/text/xml';
import { drained, openBucket, type BucketRequest } from '#store/bucket';
import { filenameFor } from './filenames.ts';
import { SourceAway, type ListingDeps, type BucketKeys, type BucketPlace, type Entry, type Listing, type Reading } from './types.ts';

/** Most entries of a source. */
export const mostEntries = 100_000;
const mostLists = 1000;
const mostListBytes = 16_777_216;
/** Objects of one list. */
const mostOfList = 1000;
const longestKey = 1024;

interface Listed {
  readonly keys: readonly ListedObject[];
  readonly isTruncated: boolean;
  readonly token: string | undefined;
}

interface ListedObject {
  readonly key: string;
  readonly etag: string;
  readonly size: number;
  readonly modified: string;
}

type Ask = (request: BucketRequest, good: readonly number[]) => Promise<Response>;

/** The objects of a bucket under a prefix, a list of at most 1,000 after the other. Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html */
export async function* bucketListing(deps: ListingDeps, place: BucketPlace, keys: BucketKeys): Listing {
  const { streams, clock, owner, signal, tally, maxBytes } = deps;
  const ask: Ask = openBucket(
    { ...place, ...keys },
    {
      clock,
      signal,
      send: ({ url, method, headers }) => streams.open({ url, owner, method, headers, signal, maxBytes: Math.max(maxBytes, mostListBytes) }),
      unreachable: (cause) => new SourceAway('The bucket cannot be reached, or refuses.', cause),
    },
  );
  let seen = 0;
  for (let lists = 0, token: string | undefined; ; lists++) {
    const listed = await listOf(ask, place.prefix, token, signal);
    yield listed.keys.filter(({ key }) => !key.endsWith('/')).map((one) => entryOf(ask, one, deps));
    seen += listed.keys.length;
    if (!listed.isTruncated) return;
    if (listed.token === undefined || listed.token === token) throw new SourceAway('The bucket does not say how its list goes on.');
    if (seen >= mostEntries || lists + 1 >= mostLists) {
      tally.failed(`${place.bucket}/${place.prefix}`, `It has more than ${mostEntries} objects: the others are left out.`);
      tally.incomplete();
      return;
    }
    ({ token } = listed);
  }
}

async function listOf(ask: Ask, prefix: string, token: string | undefined, signal: AbortSignal): Promise<Listed> {
  const words = { 'list-type': '2', 'encoding-type': 'url', 'max-keys': '1000', prefix, ...(token === undefined ? {} : { 'continuation-token': token }) };
  const query = Object.entries(words).map(([name, value]) => `${name}=${encoded(value)}`); // prettier-ignore
  const answer = await ask({ method: 'GET', path: `?${query.join('&')}` }, [200]);
  try {
    return await listIn(answer);
  } catch (error) {
    signal.throwIfAborted();
    throw new SourceAway(error instanceof BadXml ? `The list of the bucket: ${error.message}` : 'The list of the bucket broke off.', error);
  }
}

async function listIn({ body }: Response): Promise<Listed> {
  if (!body) throw new BadXml('It is empty.');
  const keys: ListedObject[] = [];
  let said: Record<string, string> = {};
  const whole: Record<string, string> = {};
  for await (const { path, text } of readXml(body)) {
    const [, one, member] = /^ListBucketResult\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
    if (one === 'Contents' && member !== undefined) said[member] = text;
    else if (one === 'Contents') {
      keys.push({ key: said['Key'] ?? '', etag: said['ETag'] ?? '', size: Number(said['Size'] ?? 0), modified: said['LastModified'] ?? '' });
      said = {};
      if (keys.at(-1)!.key.length > 3 * longestKey) throw new BadXml('It names an object whose key is too long.');
      if (keys.length > mostOfList) throw new BadXml('It names more objects than it was asked for.');
    } else if (one !== undefined && member === undefined) whole[one] = text;
  }
  if (whole['IsTruncated'] === undefined) throw new BadXml('It is no list of a bucket.');
  const isEncoded = whole['EncodingType'] === 'url';
  return {
    keys: isEncoded ? keys.map((one) => ({ ...one, key: decodeURIComponent(one.key.replaceAll('+', ' ')) })) : keys,
    isTruncated: whole['IsTruncated'] === 'true',
    token: whole['NextContinuationToken'],
  };
}

function entryOf(ask: Ask, { key, etag, size, modified }: ListedObject, { signal }: Pick<ListingDeps, 'signal'>): Entry {
  const stamp = `${etag} ${size} ${modified}`.slice(0, 500);
  const filename = filenameFor(key);
  const failed = (reason: string): Reading => ({ type: 'failed', reason });
  return {
    address: key,
    stamp,
    size,
    filename,
    async read() {
      if (Buffer.byteLength(key) > longestKey || key.split('/').some((part) => part === '.' || part === '..')) return failed('Its key cannot be asked for.');
      try {
        const answer = await ask({ method: 'GET', path: `/${key.split('/').map(encoded).join('/')}` }, [200, 404]);
        if (answer.status === 200 && answer.body) return { type: 'content', content: answer.body, filename, stamp };
        await drained(answer);
        return answer.status === 404 ? { type: 'gone' } : failed('It is empty.');
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof SourceAway)) throw error;
        return { type: 'failed', reason: error.message, isAway: true };
      }
    },
  };
}

/** As Signature Version 4 writes it. */
const encoded = (text: string) => encodeURIComponent(text.toWellFormed()).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
