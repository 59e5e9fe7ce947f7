import type { Quirks } from '#dialects/openai/responses/quirks';
import { hasManyVendors, type Vendor } from '../vendors.ts';
import { reasoningOf } from './reasoning-models.ts';

/** What is publicly known of a vendor's models on this wire. @param vendor undefined: a server that nobody knows, whose refusals teach what it takes */
export function quirksAt(vendor: Vendor | undefined, model: string, baseUrl: string): Quirks | undefined {
  if (vendor === undefined) return undefined;
  if (vendor !== 'openai' && vendor !== 'azure') return { functionsOnly: true, withoutItems: 'all', openaiFiles: false };
  const reasoning = reasoningOf(model);
  if (!reasoning && hasManyVendors(baseUrl)) return undefined;
  const known: Quirks = { atLeast16: true, sources: true, functionsOnly: false, withoutBreakpoints: true, partBreakpoints: true };
  if (!reasoning) return known;
  if (reasoning.efforts.length === 0) return { ...known, efforts: [], encrypted: false };
  const kinds = reasoning.unasked ? (['effort', 'unset'] as const) : (['effort'] as const);
  return { ...known, efforts: reasoning.efforts, refused: { temperature: kinds, top_p: kinds, top_logprobs: kinds } };
}
