import { nativeRefusal } from '../native-fault.ts';
import type { NounRoute } from '#http/noun-route';
import type { Face } from '#http/route';

/** What administrators use, and the console and the command line with them: plain REST, JSON without an envelope. */
export function admin(routes: readonly NounRoute[]): Face {
  return {
    name: 'admin',
    root: '/server/admin/',
    refusal: nativeRefusal,
    routes: routes.map((route) => ({
      ...route,
      answer: ({ exchange, caller, json }) => {
        const by = { userId: caller.userId, keyId: caller.keyId, requestId: exchange.id, address: exchange.address };
        return route.answer({ caller, by, params: exchange.params, query: exchange.query, json });
      },
    })),
  };
}
