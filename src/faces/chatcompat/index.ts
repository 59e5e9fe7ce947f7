import { encodeFault } from '#dialects/openai-chat/faults';
import type { Face } from '#http/route';
import type { GeneratingParts } from '#http/generating';
import type { Caller } from '#model/generate';
import { chatRoute } from './chat.ts';
import { modelRoutes, type ModelList } from './models.ts';

/** The interface of chat completions, as the standard public SDKs speak it. */
export function chatcompat(parts: GeneratingParts & { readonly models: (caller: Caller) => ModelList }): Face {
  return {
    name: 'chatcompat',
    root: '/server/chatcompat/',
    routes: [chatRoute(parts), ...modelRoutes(parts.models)],
    refusal: (fault) => encodeFault(fault),
  };
}
