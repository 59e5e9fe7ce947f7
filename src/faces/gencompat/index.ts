import { encodeFault } from '#dialects/gemini/faults';
import type { Face } from '#http/route';
import { contentModelRoutes } from './models.ts';
import { operationRoutes, type OperationDeps } from './operations.ts';
import { root, versions } from './root.ts';

/** The interface of content generation, as Google's SDKs speak it. */
export function gencompat(deps: OperationDeps): Face {
  return {
    name: 'gencompat',
    root: `${root}/`,
    routes: versions.flatMap((version) => [
      ...operationRoutes(`${root}/${version}`, deps),
      ...contentModelRoutes(`${root}/${version}`, deps.models, deps.standIns),
    ]),
    refusal: (fault) => encodeFault(fault),
  };
}
