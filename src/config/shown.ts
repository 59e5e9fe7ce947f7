import type { Rule } from './form.ts';
import type { Path } from './path.ts';

const secrets = new Set(
  'apiKey apiKeys secret credentials headers accessToken clientSecret secretAccessKey env proxy databaseUrl masterKey adminApiKey'.split(' '),
);
const longest = 60;

/** ` Found "x".` for a message. Hides secrets, and any text where no text is expected: it may be a misplaced key. */
export function shown(path: Path, rule: Rule | undefined, value: unknown): string {
  if (value === undefined) return '';
  if (value === null) return ' Found nothing.';
  if (Array.isArray(value)) return ' Found a list.';
  if (typeof value === 'object') return ' Found members.';
  if (path.some((step) => secrets.has(String(step)))) return ' What was found is not shown.';
  if (typeof value === 'number' || typeof value === 'boolean') return ` Found ${value}.`;
  if (typeof value !== 'string') return '';
  const wantsText = rule?.anyOf || rule?.enum || ['string', 'number', 'integer', 'boolean'].includes(rule?.type ?? '');
  if (!wantsText || /:\/\/[^/]*@|\?/.test(value)) return ' Found a text.';
  return value.length > longest ? ` Found a text of ${value.length} characters.` : ` Found ${JSON.stringify(value)}.`;
}
