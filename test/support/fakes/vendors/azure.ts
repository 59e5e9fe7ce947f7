/** Azure OpenAI: the same models and rules as OpenAI's, at addresses of its own. */
import { openai } from './openai.ts';
import type { Vendor } from './vendor.ts';

export const azure: Vendor = { ...openai, name: 'azure' };
