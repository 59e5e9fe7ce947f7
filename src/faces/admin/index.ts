import { nativeRefusal } from '../native-fault.ts';
import { plainRoute } from '../plain-route.ts';
import type { NounRoute } from '#http/noun-route';
import type { Face } from '#http/route';

/** What administrators use, and the console and the command line with them: plain REST, JSON without an envelope. */
export function admin(routes: readonly NounRoute[]): Face {
  return { name: 'admin', roots: ['/server/admin'], refusal: nativeRefusal, routes: routes.map(plainRoute) };
}
