import { encodeFault } from '#dialects/anthropic-messages/faults';
import type { GeneratingParts } from '#http/generating';
import type { Face } from '#http/route';
import type { Caller } from '#model/generate';
import { countRoute, messageRoute, type CountParts } from './messages.ts';
import { modelRoutes, type ModelList } from './models.ts';
import { idHeaders } from './root.ts';

/** The messages interface, as Anthropic's SDKs speak it. */
export function messages(parts: GeneratingParts & CountParts & { readonly models: (caller: Caller) => ModelList }): Face {
  return {
    name: 'messages',
    root: '/server/messages/',
    routes: [messageRoute(parts), countRoute(parts), ...modelRoutes(parts.models)],
    refusal: encodeFault,
    refusalHeaders: idHeaders,
  };
}
