/** How the generations of Claude differ. https://platform.claude.com/docs/en/about-claude/models/migration-guide */
export interface ClaudeModel {
  /** Thinks unless told otherwise. */
  readonly thinks: boolean;
  readonly disabled: boolean;
  readonly budgets: boolean;
  readonly adaptive: boolean;
  readonly efforts: readonly string[];
  /** A tool may be forced. */
  readonly forced: boolean;
  /** Which of temperature, top_p and top_k: as one likes, not two of them, none. */
  readonly sampling: 'any' | 'one' | 'none';
  /** The last message may be the assistant's. */
  readonly prefill: boolean;
  /** System messages may stand in the middle. */
  readonly system: boolean;
}

export function claudeOf(name: string): ClaudeModel {
  const [, family = '', major = '4', minor = '0'] = /^claude-(opus|sonnet|haiku|fable|mythos)(?:-(\d+))?(?:-(\d{1,2})(?!\d))?/.exec(name) ?? [];
  const generation = family === 'mythos' ? 505 : Number(major) * 100 + Number(minor);
  const newest = family === 'mythos' || (family === 'fable' && generation >= 501) || generation >= 505;
  const noBudgets = generation >= 500 || (family === 'opus' && generation >= 407);
  const from46 = family !== 'haiku' && generation >= 406;
  return {
    thinks: generation >= 500,
    disabled: !(newest && family !== 'sonnet') && family !== 'fable',
    budgets: !noBudgets,
    adaptive: from46 || generation >= 500,
    efforts: noBudgets ? ['low', 'medium', 'high', 'xhigh', 'max'] : from46 ? ['low', 'medium', 'high', 'max'] : [],
    forced: !newest,
    sampling: noBudgets ? 'none' : generation >= 405 || (family === 'opus' && generation >= 401) ? 'one' : 'any',
    prefill: !from46 && generation < 500,
    system: generation >= 500 || (family === 'opus' && generation >= 408),
  };
}
