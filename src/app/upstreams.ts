import type { Settings } from '#config/index';
import { certificatesIn, trusting } from '#kit/net/certificates';
import type { Clock } from '#kit/async/clock';
import { openUpstreams, type Upstreams } from '#kit/upstream/pool';

/** What all connections to the outside have in common. */
export const outwardOf = ({ outbound: { proxy, noProxy, caFile } }: Settings) => ({
  proxy,
  noProxy,
  secureContext: caFile ? trusting(certificatesIn(caFile)) : undefined,
});

/** The way to the providers as the settings want it: proxy, authorities, patience. */
export const upstreamsOf = (settings: () => Settings, clock: Clock): Upstreams =>
  openUpstreams({ clock, connectSeconds: () => settings().limits.connectSeconds, ...outwardOf(settings()) });
