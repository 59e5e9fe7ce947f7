import type { ForeignTool } from '#model/conversation';

/** What is said of a tool that a provider's wire has no words for. */
export const leftOut = ({ kind, dialect, value }: ForeignTool): string =>
  kind === 'web-search'
    ? 'tools: web_search is left out, for the provider has none and no search engine of ours stands in.'
    : `tools: a tool of type ${JSON.stringify(value['type'] ?? null)} is known to ${dialect} alone.`;
