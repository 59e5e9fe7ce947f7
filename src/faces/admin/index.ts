import { nativeRefusal } from '#http/native-refusal';
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
      answer: ({ exchange, caller, json }) => route.answer({ caller, params: exchange.params, query: exchange.query, json }),
    })),
  };
}
