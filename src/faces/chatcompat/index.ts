import { encodeFault } from '#dialects/openai/faults';
import type { Face } from '#http/route';
import type { GeneratingDeps } from '../answer.ts';
import { chatRoute } from './chat.ts';
import { completionsRoute } from './completions.ts';
import { embeddingsRoute, type EmbeddingDeps } from './embeddings.ts';
import { rawRoutes, type RawDeps } from './raw.ts';
import type { ModelsOf } from '../model-list.ts';
import { chatModelRoutes } from './models.ts';
import type { BackgroundDeps } from './responses/background.ts';
import type { KeepingDeps } from './responses/stored-body.ts';
import { responsesRoutes } from './responses/routes.ts';

/** The interface of chat completions, responses and embeddings, as the standard public SDKs speak it. */
export function chatcompat(
  deps: GeneratingDeps & KeepingDeps & Pick<BackgroundDeps, 'affords'> & EmbeddingDeps & RawDeps & { readonly models: ModelsOf },
): Face {
  return {
    name: 'chatcompat',
    root: '/server/chatcompat/',
    routes: [chatRoute(deps), ...responsesRoutes(deps), completionsRoute(deps), embeddingsRoute(deps), ...rawRoutes(deps), ...chatModelRoutes(deps.models)],
    refusal: (fault) => encodeFault(fault),
  };
}
