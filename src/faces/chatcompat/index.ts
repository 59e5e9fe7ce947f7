import { encodeFault } from '#dialects/openai/faults';
import { alsoBelow, type Face } from '#http/route';
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
import { speechRoute, type SpeechDeps } from './speech.ts';
import { root, short } from './root.ts';

/** The interface of chat completions, responses and embeddings, as the standard public SDKs speak it. */
export function chatcompat(
  deps: GeneratingDeps & KeepingDeps & Pick<BackgroundDeps, 'affords'> & EmbeddingDeps & RawDeps & SpeechDeps & { readonly models: ModelsOf },
): Face {
  return {
    name: 'chatcompat',
    roots: ['/server/chatcompat', short],
    routes: alsoBelow(
      [
        chatRoute(deps),
        ...responsesRoutes(deps),
        completionsRoute(deps),
        embeddingsRoute(deps),
        speechRoute(deps),
        ...rawRoutes(deps),
        ...chatModelRoutes(deps.models),
      ],
      root,
      short,
    ),
    refusal: (fault) => encodeFault(fault),
  };
}
