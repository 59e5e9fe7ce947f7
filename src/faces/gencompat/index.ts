import { encodeFault } from '#dialects/gemini/faults';
import { alsoBelow, type Face } from '#http/route';
import { contentModelRoutes } from './models.ts';
import { operationRoutes, type OperationDeps } from './operations.ts';
import { base, namedBy, root, shared, short } from './root.ts';

/** The interface of content generation, as Google's SDKs speak it. */
export function gencompat(deps: OperationDeps): Face {
  const routes = [...operationRoutes(base, deps), ...contentModelRoutes(base, deps.models, deps.standIns)];
  const both = alsoBelow(routes, base, `${root}/v1`);
  return {
    name: 'gencompat',
    roots: [root, short],
    shares: [{ root: shared, header: namedBy }],
    routes: alsoBelow(alsoBelow(both, base, short), base, shared, [namedBy]),
    refusal: (fault) => encodeFault(fault),
  };
}
