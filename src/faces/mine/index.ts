import { nativeRefusal } from '../native-fault.ts';
import { plainRoute } from '../plain-route.ts';
import type { NounRoute } from '#http/noun-route';
import type { Face } from '#http/route';

/** A user's own things, and what is open to all: plain REST, JSON without an envelope. */
export function mine(routes: readonly NounRoute[]): Face {
  return { name: 'mine', roots: ['/server/mine', '/server/session', '/.well-known'], refusal: nativeRefusal, routes: routes.map(plainRoute) };
}
