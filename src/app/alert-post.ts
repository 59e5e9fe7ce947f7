import type { Settings } from '#config/index';
import type { Clock } from '#kit/async/clock';
import { openGuardedFetch } from '#kit/net/guarded-fetch';
import type { AlertSender } from '#resources/usage/limit-alerts';
import { outwardOf } from './upstreams.ts';

const mostBytes = 65_536;

/** Sends alerts to an address that the operator chose, which may be a private one. */
export function alertPost(settings: Settings, clock: Clock): AlertSender['post'] {
  const outward = outwardOf(settings);
  return async (url, body, headers, signal) => {
    const { fetch } = openGuardedFetch({ ...outward, clock, allow: [new URL(url).origin] });
    await fetch({ url, owner: 'alerts', signal, maxBytes: mostBytes, takes: () => true, headers, body, anySuccess: true });
  };
}
