/** The text within a Markdown code fence, undefined where there is none. Models are untrusted, so no backtracking regular expression may run on their texts. */
export function withoutFence(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed.length < 6 || !trimmed.startsWith('```') || !trimmed.endsWith('```')) return undefined;
  const fenced = trimmed.slice(trimmed.startsWith('json', 3) ? 7 : 3, -3);
  const inner = fenced.trimStart();
  return fenced.slice(0, fenced.length - inner.length).includes('\n') ? inner.trimEnd() : undefined;
}
