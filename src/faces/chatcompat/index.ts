import { encodeFault } from '#dialects/openai/faults';
import { alsoBelow, type Face, type Route } from '#http/route';
import type { EmbeddingDeps, GeneratingDeps } from '../answer.ts';
import { chatRoute } from './chat.ts';
import { completionsRoute } from './completions.ts';
import { embeddingsRoute } from './embeddings.ts';
import { type RawDeps, rawRoutes } from './raw.ts';
import { chatModelRoutes } from './models.ts';
import { type BackgroundDeps, openBackground } from './responses/background.ts';
import { type SpeechDeps, speechRoute } from './speech.ts';
import { root, short } from './root.ts';
import { type CountDeps, countRoute } from './responses/count.ts';
import { conversationRoutes } from './responses/conversations.ts';
import { responseRoute } from './responses/create.ts';
import { keptRoutes } from './responses/retrieve.ts';

/** The interface of chat completions, responses and embeddings, as the standard public SDKs speak it. */
export function chatcompat(deps: GeneratingDeps & CountDeps & Pick<BackgroundDeps, 'affords'> & EmbeddingDeps & RawDeps & SpeechDeps): Face {
  const routes = [
    chatRoute(deps),
    ...responsesRoutes(deps),
    completionsRoute(deps),
    embeddingsRoute(deps),
    speechRoute(deps),
    ...rawRoutes(deps),
    ...chatModelRoutes(deps.models),
  ];
  return {
    name: 'chatcompat',
    roots: ['/server/chatcompat', short, ...withoutVersion(routes)],
    routes: alsoBelow(routes, root, short),
    refusal: (fault) => encodeFault(fault),
  };
}

/** `/chat`, `/models`…: what clients ask whose base address lacks the version. Nothing is there, and they are told so in their words. */
const withoutVersion = (routes: readonly Route[]): readonly string[] => [
  ...new Set(routes.map(({ path }) => path.slice(root.length).replace(/(?<=.)\/.*/, ''))),
];

/** The responses interface: answers that are kept, gone on from, and made in the background. */
function responsesRoutes(deps: GeneratingDeps & CountDeps & Pick<BackgroundDeps, 'affords'>): readonly Route[] {
  const background = openBackground(deps);
  return [responseRoute(deps, background), countRoute(deps), ...keptRoutes(deps, background), ...conversationRoutes(deps)];
}
