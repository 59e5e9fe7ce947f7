import { anthropic } from './anthropic/index.ts';
import { gemini } from './google/gemini.ts';
import { vertex } from './google/vertex.ts';
import { azureChat, openaiChat } from './openai/chat.ts';
import { azureResponses, openaiResponses } from './openai/responses.ts';
import type { ProviderModule } from './shared/provider.ts';

/**
 * Every kind of provider. The settings read here what they take and which providers the environment switches on, and `index.ts` makes providers of it. Where a
 * dialect has several kinds, the one without a name stands before the others; where the environment switches on several providers, the first one comes first.
 */
export const providerModules: readonly ProviderModule[] = [openaiChat, openaiResponses, azureChat, azureResponses, anthropic, gemini, vertex];
