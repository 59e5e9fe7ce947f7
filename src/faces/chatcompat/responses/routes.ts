import type { GeneratingDeps } from '../../answer.ts';
import type { Route } from '#http/route';
import { openBackground, type BackgroundDeps } from './background.ts';
import { conversationRoutes } from './conversations.ts';
import { responseRoute } from './create.ts';
import type { KeepingDeps } from './stored-body.ts';
import { keptRoutes } from './retrieve.ts';

/** The responses interface: answers that are kept, gone on from, and made in the background. */
export function responsesRoutes(deps: GeneratingDeps & KeepingDeps & Pick<BackgroundDeps, 'affords'>): readonly Route[] {
  const background = openBackground(deps);
  return [responseRoute(deps, background), ...keptRoutes(deps, background), ...conversationRoutes(deps)];
}
