/** The dimensions that usage can be grouped by; `day` and `hour` are cut in a time zone. */
export const groups = ['model', 'user', 'key', 'app', 'face', 'region', 'day', 'hour', 'provider', 'team', 'balance'] as const;
export type Group = (typeof groups)[number] | Tag;
/** The value of one tag that callers set. */
export type Tag = `tag:${string}`;

export const isGroup = (word: string): word is Group => groups.some((group) => group === word) || isTag(word);
export const isTag = (word: string): word is Tag => /^tag:[A-Za-z][\w.-]{0,31}$/.test(word);
