import type { Examples } from '#http/openapi';
import kept from './examples.json' with { type: 'json' };

/** A request and its answer of each operation, as `npm run examples` made them by asking this server. */
export const examples: Examples = kept;
