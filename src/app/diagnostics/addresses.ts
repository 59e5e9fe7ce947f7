import type { Settings } from '#config/index';
import { addressOf } from '#gateway/searching/engines';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import { UpstreamError } from '#kit/upstream/response';
import type { Check } from './check.ts';
import { timed } from '#kit/async/timed';
import { codeInBrackets } from '#kit/net/error-code';
import { openBucket, type Bucket } from '#store/bucket';

/**
 * The servers beside the providers that the settings name: whether anything answers there. Whether it works is not tried, since that may cost something; but of a
 * bucket whether it lists what it has.
 */
export function examineAddresses({ search, rerank, guard, blobs }: Settings, upstreams: Pick<Upstreams, 'get'>, clock: Clock): readonly Promise<Check>[] {
  const named = [
    { name: `search engine ${search.engine}`, url: addressOf(search) ?? '' },
    { name: 'rerank', url: rerank.url },
    ...guard.checks.flatMap(({ name, kind, url = '' }) => (kind === 'http' ? [{ name: `guard ${name}`, url }] : [])),
  ];
  const servers = named.flatMap(({ name, url }) => (url === '' ? [] : [examined(name, url, upstreams, clock)]));
  return blobs.s3.endpoint === '' ? servers : [...servers, examinedBucket(blobs.s3, upstreams, clock)];
}

const milliseconds = 5000;
const limits = { headSeconds: 60, quietSeconds: 60 };

async function examinedBucket(bucket: Bucket, upstreams: Pick<Upstreams, 'get'>, clock: Clock): Promise<Check> {
  const name = `bucket ${bucket.bucket}`;
  const { host } = new URL(bucket.endpoint);
  const startedAt = clock.monotonic();
  let status: number | undefined;
  try {
    await timed({ clock, milliseconds, late: new Error('Timed out.') }, (signal) => {
      const ask = openBucket(bucket, {
        clock,
        signal,
        unreachable: (cause) => cause as Error,
        async send({ url: address, headers }) {
          const url = new URL(address);
          const response = await upstreams.get({ url, path: url.pathname + url.search, headers, signal, ...limits });
          response.leave();
          return { status: (status = response.status), body: null };
        },
      });
      return ask({ method: 'GET', path: '?list-type=2&max-keys=1' }, [200]);
    });
    return { name, state: 'ok', says: `answers at ${host}.`, milliseconds: Math.round((clock.monotonic() - startedAt) * 10) / 10 };
  } catch (error) {
    const says =
      status === undefined ? `cannot be reached at ${host}${codeInBrackets(error)}.` : `answers at ${host} with ${status}: check its name, region and keys.`;
    return { name, state: 'failed', says, milliseconds: null };
  }
}

async function examined(name: string, address: string, upstreams: Pick<Upstreams, 'get'>, clock: Clock): Promise<Check> {
  const url = URL.parse(address);
  if (!url) return { name, state: 'failed', says: 'Its address is no URL.', milliseconds: null };
  const startedAt = clock.monotonic();
  try {
    const response = await timed({ clock, milliseconds, late: new Error('Timed out.') }, (signal) =>
      upstreams.get({ url, path: url.pathname, headers: {}, signal, ...limits }),
    );
    const took = Math.round((clock.monotonic() - startedAt) * 10) / 10;
    response.leave();
    const { status } = response;
    return status >= 500
      ? { name, state: 'warning', says: `answers at ${url.host} with an error (${status}).`, milliseconds: took }
      : { name, state: 'ok', says: `answers at ${url.host}.`, milliseconds: took };
  } catch (error) {
    const says = error instanceof UpstreamError ? `cannot be reached at ${url.host}${codeInBrackets(error)}.` : `does not answer at ${url.host}.`;
    return { name, state: 'failed', says, milliseconds: null };
  }
}
