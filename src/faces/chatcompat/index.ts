import { encodeFault } from '#dialects/openai/faults';
import type { Face } from '#http/route';
import type { GeneratingParts } from '../answer.ts';
import { chatRoute } from './chat.ts';
import { completionsRoute } from './completions.ts';
import { embeddingsRoute, type EmbeddingParts } from './embeddings.ts';
import { passedRoutes, type PassingParts } from './raw.ts';
import type { ModelsOf } from '../model-list.ts';
import { chatModelRoutes } from './models.ts';
import type { BackgroundParts } from './responses/background.ts';
import type { KeepingParts } from './responses/stored-body.ts';
import { responsesRoutes } from './responses/routes.ts';

/** The interface of chat completions, responses and embeddings, as the standard public SDKs speak it. */
export function chatcompat(
  parts: GeneratingParts & KeepingParts & Pick<BackgroundParts, 'affords'> & EmbeddingParts & PassingParts & { readonly models: ModelsOf },
): Face {
  return {
    name: 'chatcompat',
    root: '/server/chatcompat/',
    routes: [
      chatRoute(parts),
      ...responsesRoutes(parts),
      completionsRoute(parts),
      embeddingsRoute(parts),
      ...passedRoutes(parts),
      ...chatModelRoutes(parts.models),
    ],
    refusal: (fault) => encodeFault(fault),
  };
}
