import type { Settings } from '#config';
import { certificatesIn, trusting } from './kit/certificates.ts';
import type { Clock } from './kit/clock.ts';
import { openUpstreams, type Upstreams } from './kit/pool.ts';

/** What all connections to the outside have in common. */
export const outwardOf = ({ outbound: { proxy, noProxy, caFile } }: Settings) => ({
  proxy,
  noProxy,
  secureContext: caFile ? trusting(certificatesIn(caFile)) : undefined,
});

/** The way to the providers as the settings want it: proxy, authorities, patience. */
export const upstreamsOf = (settings: () => Settings, clock: Clock): Upstreams =>
  openUpstreams({ clock, connectSeconds: () => settings().limits.connectSeconds, ...outwardOf(settings()) });
