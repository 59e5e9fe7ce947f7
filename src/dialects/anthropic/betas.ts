/** Names of beta features, as a server that does not know them lists them. They are kept with what was learned: limits on their number and length bound that. */
const mostBetas = 64;

/** ``Unexpected value(s) `effort-2025-11-24`, `context-1m-2025-08-07` for the `anthropic-beta` header.`` anthropics/claude-code#21625 */
export function refusedBetasIn(said: string): readonly string[] {
  const listed = /\bunexpected value(?:\(s\)|s)? (.{1,300}?) for the [`'"]?anthropic-beta\b/i.exec(said)?.[1] ?? '';
  return [...listed.matchAll(/[`'"]([a-z\d][a-z\d.-]{0,63})[`'"]/gi)].map(([, name]) => name!);
}

/** Those that are refused with these; undefined where nothing is new. */
export function moreBetas(known: readonly string[] = [], refused: readonly string[]): readonly string[] | undefined {
  const all = [...new Set([...known, ...refused])].slice(0, mostBetas);
  return all.length > known.length ? all : undefined;
}
