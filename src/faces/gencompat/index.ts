import { encodeFault } from '#dialects/gemini/faults';
import { alsoBelow, type Face, type Route } from '#http/route';
import { contentModelRoutes } from './models.ts';
import { type OperationDeps, operationRoutes } from './operations.ts';

const root = '/server/gencompat';

/** The versions in the address that clients use, `v1` too, are one interface. */
const base = `${root}/v1beta`;

/**
 * What SDKs ask that are given the server's address alone. Of `/v1`, which is the chat interface's, only what names them in `x-goog-api-client` is meant, and
 * what has a publisher in its address, as nothing of the chat interface has.
 */
const short = '/v1beta';
const shared = '/v1';
const namedBy = 'x-goog-api-client';

/** The interface of content generation, as Google's SDKs speak it. */
export function gencompat(deps: OperationDeps): Face {
  const routes = [...operationRoutes(base, deps), ...contentModelRoutes(base, deps.models, deps.standIns)];
  const both = alsoBelow(routes, base, `${root}/v1`);
  return {
    name: 'gencompat',
    roots: [root, short],
    shares: [{ root: shared, header: namedBy }],
    routes: alsoBelow(alsoBelow(both, base, short), base, shared, [namedBy]).map(forAllPublishers),
    refusal: (fault) => encodeFault(fault),
  };
}

const forAllPublishers = (route: Route): Route => ({
  ...route,
  also: (route.also ?? []).map(({ method, path, headers }) => ({ method, path, ...(headers && !path.startsWith(`${shared}/publishers/`) ? { headers } : {}) })),
});
