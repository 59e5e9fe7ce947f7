import { nativeRefusal } from '../native-fault.ts';
import { plainRoute } from '../plain-route.ts';
import type { NounRoute } from '#http/noun-route';
import type { Face } from '#http/route';

/* Plain REST: JSON without an envelope. */

/** What administrators use, and the console and the command line with them. */
export const admin = (routes: readonly NounRoute[]): Face => plain('admin', ['/server/admin'], routes);

/** A user's own things, and what is open to all. */
export const mine = (routes: readonly NounRoute[]): Face => plain('mine', ['/server/mine', '/server/session', '/.well-known'], routes);

const plain = (name: string, roots: readonly string[], routes: readonly NounRoute[]): Face => ({
  name,
  roots,
  refusal: nativeRefusal,
  routes: routes.map(plainRoute),
});
