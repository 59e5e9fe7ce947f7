import type { Quirks } from '#dialects/gemini/quirks';
import type { Level } from '#dialects/gemini/thinking';
import type { Vendor } from '../vendors.ts';

/** What is publicly known of a vendor's models on this wire. @param vendor undefined: a server that nobody knows, whose refusals teach what it takes */
export function quirksAt(vendor: Vendor | undefined, model: string): Quirks | undefined {
  if (vendor !== 'google' && vendor !== 'vertex') return undefined;
  const shared: Quirks = vendor === 'vertex' ? { withoutIds: true } : {};
  const [, major, minor = '0', kind = ''] = /(?:^|\/)gemini-(\d{1,2})(?:\.(\d{1,2}))?(-[a-z0-9.-]{0,100})?$/i.exec(model.slice(0, longestName)) ?? [];
  if (major === undefined) return vendor === 'vertex' ? shared : undefined;
  const version = Number(major) + Number(minor) / 10;
  return { ...shared, ...(version < 3 ? secondOf(version, kind) : laterOf(version, kind)) };
}

const longestName = 300;

/** Gemini 2.5 and before. https://ai.google.dev/gemini-api/docs/thinking#set-budget, https://github.com/vercel/ai/issues/8943 */
function secondOf(version: number, kind: string): Quirks {
  const shared = { jsonWithoutTools: true, mediaBesideResults: true };
  if (version < 2.5) return kind.includes('-thinking') ? shared : { ...shared, withoutThinking: true };
  if (kind.includes('-image')) return { ...shared, withoutThinking: true, withoutPenalties: true };
  const thinking = { ...shared, withoutPenalties: true };
  if (kind.startsWith('-pro')) return { ...thinking, alwaysThinks: true, leastBudget: 128, mostBudget: 32_768 };
  return { ...thinking, ...(kind.startsWith('-flash-lite') ? { leastBudget: 512 } : {}), mostBudget: 24_576 };
}

/** Gemini 3 and later. https://ai.google.dev/gemini-api/docs/gemini-3, https://ai.google.dev/gemini-api/docs/thought-signatures */
const laterOf = (version: number, kind: string): Quirks => ({ signed: true, withoutPenalties: true, levels: levelsOf(version, kind) });

/** https://ai.google.dev/gemini-api/docs/thinking#thinking-levels. Models that are newer than this teach the rest by their refusals. */
function levelsOf(version: number, kind: string): readonly Level[] {
  if (kind.includes('-image')) return ['minimal', 'high'];
  if (kind.startsWith('-pro')) return version === 3 ? ['low', 'high'] : ['low', 'medium', 'high'];
  return version < 3.5 ? ['minimal', 'low', 'medium', 'high'] : ['low', 'medium', 'high'];
}
