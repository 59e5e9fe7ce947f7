import type { Quirks } from '#dialects/openai/chat/quirks';
import type { Vendor } from '../vendors.ts';

/**
 * What is publicly known of a vendor's models on this wire.
 *
 * @param vendor undefined: a server that nobody knows, whose refusals teach what it takes
 * @param model its name upstream
 */
export function quirksAt(vendor: Vendor | undefined, _model: string): Quirks | undefined {
  switch (vendor) {
    case 'deepseek': // https://api-docs.deepseek.com/guides/thinking_mode
    case 'moonshot': // QuantumNous/new-api#3121
      return { thoughts: 'demanded' };
    case 'mistral': // charmbracelet/crush#1590
    case 'groq':
      return { thoughts: 'refused' };
    default:
      return undefined;
  }
}

/** Does this vendor's chat API return thoughts in a field that it accepts in the next request? */
export const returnsThoughts = (vendor: Vendor | undefined): boolean => vendor === undefined || !['openai', 'azure', 'mistral', 'groq'].includes(vendor);
