import { anthropic } from './anthropic/index.ts';
import { anthropicVertex } from './anthropic/vertex.ts';
import { gemini } from './google/gemini.ts';
import { vertex } from './google/vertex.ts';
import { azureChat, openaiChat } from './openai/chat.ts';
import { azureResponses, openaiResponses } from './openai/responses.ts';
import type { ProviderModule } from './shared/provider.ts';

/**
 * All kinds of provider. The settings read from this table which fields they accept and which providers environment variables enable, and `index.ts` creates
 * providers from it. If a dialect has several kinds, the one without a name comes first; if the environment enables several providers, they keep this order.
 */
export const providerModules: readonly ProviderModule[] = [openaiChat, openaiResponses, azureChat, azureResponses, anthropic, anthropicVertex, gemini, vertex];
