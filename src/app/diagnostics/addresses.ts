import type { Settings } from '#config/index';
import { addressOf } from '#gateway/searching/engines';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import { UpstreamError } from '#kit/upstream/response';
import type { Check } from './check.ts';
import { timed } from '#kit/async/timed';
import { codeIn } from '#kit/net/error-code';

/** The servers beside the providers that the settings name: whether anything answers there. Whether it works is not tried, since that may cost something. */
export function examineAddresses({ search, rerank, guard }: Settings, upstreams: Pick<Upstreams, 'get'>, clock: Clock): readonly Promise<Check>[] {
  const named = [
    { name: `search engine ${search.engine}`, url: addressOf(search) ?? '' },
    { name: 'rerank', url: rerank.url },
    ...guard.checks.flatMap(({ name, kind, url = '' }) => (kind === 'http' ? [{ name: `guard ${name}`, url }] : [])),
  ];
  return named.flatMap(({ name, url }) => (url === '' ? [] : [examined(name, url, upstreams, clock)]));
}

const milliseconds = 5000;

async function examined(name: string, address: string, upstreams: Pick<Upstreams, 'get'>, clock: Clock): Promise<Check> {
  const url = URL.parse(address);
  if (!url) return { name, state: 'failed', says: 'Its address is no URL.', milliseconds: null };
  const startedAt = clock.monotonic();
  try {
    const response = await timed({ clock, milliseconds, late: new Error('Timed out.') }, (signal) =>
      upstreams.get({ url, path: url.pathname, headers: {}, signal, headSeconds: 60, quietSeconds: 60 }),
    );
    const took = Math.round((clock.monotonic() - startedAt) * 10) / 10;
    response.leave();
    const { status } = response;
    return status >= 500
      ? { name, state: 'warning', says: `answers at ${url.host} with an error (${status}).`, milliseconds: took }
      : { name, state: 'ok', says: `answers at ${url.host}.`, milliseconds: took };
  } catch (error) {
    const says = error instanceof UpstreamError ? `cannot be reached at ${url.host}${codeIn(error)}.` : `does not answer at ${url.host}.`;
    return { name, state: 'failed', says, milliseconds: null };
  }
}
