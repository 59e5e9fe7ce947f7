import type { Quirks } from '#dialects/openai/chat/quirks';
import { hasManyVendors, type Vendor } from '../vendors.ts';
import { isNamedByOpenAI, reasoningOf } from './reasoning-models.ts';

/** What is publicly known of a vendor's models on this wire. @param vendor undefined: a server that nobody knows, whose refusals teach what it takes */
export function quirksAt(vendor: Vendor | undefined, model: string, baseUrl: string): Quirks | undefined {
  switch (vendor) {
    case 'openai':
    case 'azure': {
      if (!reasoningOf(model) && hasManyVendors(baseUrl)) return undefined;
      const { refused, ...reasoning } = reasoningQuirks(model);
      return {
        maxTokensDefault: 'max_completion_tokens',
        boundedIds: true,
        ...(vendor === 'openai' || isNamedByOpenAI(model) ? { thoughts: 'refused' } : {}), // Azure also serves models that demand theirs
        ...ownForms,
        anyRoot: false,
        ...reasoning,
        refused: { ...unstored, ...refused },
      };
    }
    case 'deepseek': // https://api-docs.deepseek.com/guides/thinking_mode
      return { ...plain, maxTokensField: 'max_tokens', textOnly: true, developer: false, schemas: false, thoughts: 'demanded', mostStops: 16 };
    case 'mistral':
      return { ...mistral, developer: false, thoughts: 'refused' }; // charmbracelet/crush#1590
    case 'moonshot': // QuantumNous/new-api#3121
      return { ...plain, thoughts: 'demanded' };
    case 'groq':
      return { ...groq, thoughts: 'refused', ...groqEfforts(model) };
    case 'openrouter': // https://openrouter.ai/docs/api-reference/parameters
      return { ...plain, topK: true };
    case undefined:
      return undefined;
    default:
      return { functionsOnly: true, openaiFiles: false };
  }
}

/** Does this vendor's chat API return thoughts in a field that it accepts in the next request? */
export const returnsThoughts = (vendor: Vendor | undefined): boolean => vendor === undefined || !['openai', 'azure', 'mistral', 'groq'].includes(vendor);

/** Only OpenAI's models are known to accept tools of free text, a choice among some of the tools and the older form of tools, refusals, and cache breakpoints of parts; and only there are the files that clients upload. */
const ownForms: Quirks = { functionsOnly: false, allowedTools: true, olderFunctions: true, refusals: true, partBreakpoints: true };
const plain: Quirks = { functionsOnly: true, allowedTools: false, openaiFiles: false };

/** Mistral knows no other fields than its own, and tells the usage of streams unasked. https://docs.mistral.ai/api/endpoint/chat, editor-code-assistant/eca#231 */
const mistral: Quirks = {
  ...plain,
  maxTokensField: 'max_tokens',
  seedField: 'random_seed',
  usage: false,
  shortIds: true,
  userAfterTool: false,
  prefix: true,
  refused: alwaysRefused(
    'logit_bias logprobs top_logprobs user moderation prompt_cache_options prompt_cache_retention safety_identifier service_tier verbosity',
  ),
};

/** https://console.groq.com/docs/openai, https://console.groq.com/docs/structured-outputs, OpenHands/OpenHands#4643 */
const groq: Quirks = {
  ...plain,
  formatBesideTools: false,
  stringContent: true,
  refused: alwaysRefused(
    'n logit_bias logprobs top_logprobs moderation prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier verbosity',
  ),
};

/** https://console.groq.com/docs/reasoning */
function groqEfforts(model: string): Quirks {
  if (model.includes('gpt-oss')) return { efforts: ['low', 'medium', 'high'] };
  return model.includes('qwen3') ? { efforts: ['none', 'default'] } : {};
}

/** Fields that a vendor does not know, however its models think. */
function alwaysRefused(names: string): NonNullable<Quirks['refused']> {
  return Object.fromEntries(names.split(' ').map((name) => [name, ['effort', 'none', 'unset']]));
}

/** Completions are not stored upstream, and metadata is accepted only for those that are: QwenLM/qwen-code#243 */
const unstored = alwaysRefused('metadata');

/** Models that reason refuse the older name of the token limit, and what changes how tokens are drawn; others refuse an effort. */
function reasoningQuirks(model: string): Quirks {
  const reasoning = reasoningOf(model);
  if (!reasoning) return {};
  if (reasoning.efforts.length === 0) return { effort: false };
  const kinds = reasoning.unasked ? (['effort', 'unset'] as const) : (['effort'] as const);
  return { maxTokensField: 'max_completion_tokens', efforts: reasoning.efforts, refused: Object.fromEntries(drawing.map((name) => [name, kinds])) };
}

/** LunaTranslator#1842, smolagents#1671, https://platform.openai.com/docs/guides/latest-model */
const drawing = ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'stop'];
