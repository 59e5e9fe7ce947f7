import { encodeFault } from '#dialects/gemini/faults';
import { alsoBelow, type Face, type Route } from '#http/route';
import { contentModelRoutes } from './models.ts';
import { type OperationDeps, operationRoutes } from './operations.ts';

const root = '/server/gencompat';

/** The versions in the address that clients use, `v1` too, and `v1beta1` of the cloud platform, are one interface. */
const base = `${root}/v1beta`;

/**
 * What SDKs ask that are given the server's address alone. Of `/v1`, which is the chat interface's, only what names them in `x-goog-api-client` is meant, and
 * what the chat interface has not: a POST to a model, and an address with a publisher in it.
 */
const shorts = ['/v1beta', '/v1beta1'];
const shared = '/v1';
const namedBy = 'x-goog-api-client';

/** The interface of content generation, as Google's SDKs speak it. */
export function gencompat(deps: OperationDeps): Face {
  const routes: readonly Route[] = [...operationRoutes(base, deps), ...contentModelRoutes(base, deps.models, deps.standIns)];
  const versions = [`${root}/v1`, `${root}/v1beta1`, ...shorts].reduce((known, version) => alsoBelow(known, base, version), routes);
  return {
    name: 'gencompat',
    roots: [root, ...shorts],
    shares: [{ root: shared, header: namedBy }],
    routes: alsoBelow(versions, base, shared, [namedBy]).map(forAllClients),
    refusal: (fault) => encodeFault(fault),
  };
}

const hasPublisher = /^\/v1(?:\/projects\/:project\/locations\/:location)?\/publishers\//;

/** For whoever asks, where no other interface has the address. */
const forAllClients = (route: Route): Route => ({
  ...route,
  also: (route.also ?? []).map(({ headers, ...address }) =>
    headers && address.method === 'GET' && !hasPublisher.test(address.path) ? { ...address, headers } : address,
  ),
});
