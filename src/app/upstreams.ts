import type { Settings } from '#config/index';
import { certificatesIn, trusting } from '#kit/net/certificates';
import { roomFor } from '#http/connection-limit';
import type { Clock } from '#kit/async/clock';
import { openUpstreams, type Upstreams } from '#kit/upstream/pool';

/** The outbound proxy and certificate settings that all connections share. */
export const outwardOf = ({ outbound: { proxy, noProxy, caFile } }: Settings) => ({
  proxy,
  noProxy,
  secureContext: caFile ? trusting(certificatesIn(caFile)) : undefined,
});

/** The connection pools to providers, with the proxy, certificate authorities and connect timeout of the settings: half of the open files are for clients, half for these. */
export const upstreamsOf = (settings: () => Settings, clock: Clock): Upstreams =>
  openUpstreams({ clock, connectSeconds: () => settings().limits.connectSeconds, mostConnections: roomFor(Infinity), ...outwardOf(settings()) });
