import { encodeFault } from '#dialects/anthropic/faults';
import type { GeneratingDeps } from '../answer.ts';
import type { Face } from '#http/route';
import { countRoute, messageRoute, type CountDeps } from './messages.ts';
import type { ModelsOf } from '../model-list.ts';
import { messageModelRoutes } from './models.ts';
import { idHeaders } from './root.ts';

/** The messages interface, as Anthropic's SDKs speak it. */
export function messages(deps: GeneratingDeps & CountDeps & { readonly models: ModelsOf }): Face {
  return {
    name: 'messages',
    root: '/server/messages/',
    routes: [messageRoute(deps), countRoute(deps), ...messageModelRoutes(deps.models)],
    refusal: encodeFault,
    refusalHeaders: idHeaders,
  };
}
