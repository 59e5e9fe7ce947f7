import type { Quirks } from '#dialects/openai/responses/quirks';
import type { Vendor } from '../vendors.ts';

/**
 * What is publicly known of a vendor's models on this wire.
 *
 * @param vendor undefined: a server that nobody knows, whose refusals teach what it takes
 * @param model its name upstream
 */
export function quirksAt(vendor: Vendor | undefined, _model: string): Quirks | undefined {
  if (vendor === undefined) return undefined;
  return vendor === 'openai' || vendor === 'azure' ? undefined : { functionsOnly: true };
}
