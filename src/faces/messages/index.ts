import { encodeFault } from '#dialects/anthropic/faults';
import type { GeneratingDeps } from '../answer.ts';
import { alsoBelow, type Face } from '#http/route';
import { countRoute, messageRoute, type CountDeps } from './messages.ts';
import type { ModelsOf } from '../model-list.ts';
import { messageModelRoutes } from './models.ts';
import { idHeaders, namedBy, root, short } from './root.ts';

/** The messages interface, as Anthropic's SDKs speak it. */
export function messages(deps: GeneratingDeps & CountDeps & { readonly models: ModelsOf }): Face {
  return {
    name: 'messages',
    roots: ['/server/messages', `${short}/messages`],
    shares: [{ root: short, header: namedBy }],
    routes: [...alsoBelow([messageRoute(deps), countRoute(deps)], root, short), ...alsoBelow(messageModelRoutes(deps.models), root, short, [namedBy])],
    refusal: encodeFault,
    refusalHeaders: idHeaders,
  };
}
