import type { Settings } from '#config';
import { certificatesIn, trusting } from './kit/certificates.ts';
import type { Clock } from './kit/clock.ts';
import { openUpstreams, type Upstreams } from './kit/pool.ts';

/** The way to the providers as the settings want it: proxy, authorities, patience. */
export function upstreamsOf(settings: () => Settings, clock: Clock): Upstreams {
  const { outbound } = settings();
  return openUpstreams({
    clock,
    connectSeconds: () => settings().limits.connectSeconds,
    proxy: outbound.proxy,
    noProxy: outbound.noProxy,
    secureContext: outbound.caFile ? trusting(certificatesIn(outbound.caFile)) : undefined,
  });
}
