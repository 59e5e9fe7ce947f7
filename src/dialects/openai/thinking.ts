/** How a request asks the model to think: with an effort, not at all, or without naming an effort. */
export type Thinking = 'effort' | 'none' | 'unset';

export const anyThinking: readonly Thinking[] = ['effort', 'none', 'unset'];

export const thinkingOf = (effort: string | undefined): Thinking => (effort === undefined ? 'unset' : effort === 'none' ? 'none' : 'effort');

/** Optional fields that a model refuses, each with how it was asked to think then. */
export type RefusedFields = Readonly<Record<string, readonly Thinking[]>>;
