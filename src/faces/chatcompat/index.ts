import { encodeFault } from '#dialects/openai-faults';
import type { Face } from '#http/route';
import type { GeneratingParts } from '#http/generating';
import type { Caller } from '#model/generate';
import { chatRoute } from './chat.ts';
import { completionsRoute } from './completions.ts';
import { embeddingsRoute, type EmbeddingParts } from './embeddings.ts';
import { passedRoutes, type PassingParts } from './passed.ts';
import { modelRoutes, type ModelList } from './models.ts';
import type { KeepingParts } from './responses/kept.ts';
import { responsesRoutes } from './responses/routes.ts';

/** The interface of chat completions, responses and embeddings, as the standard public SDKs speak it. */
export function chatcompat(parts: GeneratingParts & KeepingParts & EmbeddingParts & PassingParts & { readonly models: (caller: Caller) => ModelList }): Face {
  return {
    name: 'chatcompat',
    root: '/server/chatcompat/',
    routes: [
      chatRoute(parts),
      ...responsesRoutes(parts),
      completionsRoute(parts),
      embeddingsRoute(parts),
      ...passedRoutes(parts),
      ...modelRoutes(parts.models),
    ],
    refusal: (fault) => encodeFault(fault),
  };
}
