import type { GenerateCall, Reasoning } from '#core/call';
import { textTurn, type Turn } from '#core/conversation';
import type { JsonObject } from '#core/json';
import type { RunAsked } from '#core/run';
import type { DeepQuestion } from '../deep-question.ts';

export const askedOf = (question: DeepQuestion): RunAsked => ({ message: question.text, more: question as unknown as JsonObject });

/** The question of a stored run: it was written by `askedOf`. */
export const questionIn = ({ more }: RunAsked): DeepQuestion => more as unknown as DeepQuestion;

/** A call of the run's model, without turns. */
export function callOf({ model, temperature, effort }: DeepQuestion): Omit<GenerateCall, 'stream' | 'turns'> {
  const reasoning: Reasoning | undefined = effort && { effort };
  return {
    model,
    tools: [],
    output: { type: 'text' },
    sampling: temperature === undefined ? {} : { temperature },
    ...(reasoning ? { reasoning } : {}),
    extra: {},
  };
}

/** The turns before the question, without what systems said: that is for the report alone. */
export const earlierTurns = ({ turns }: DeepQuestion): readonly Turn[] => turns.slice(0, -1).filter(({ role }) => role !== 'system');

/** The question with what the user answered when asked back. */
export function withAnswer(question: DeepQuestion, asked: string, answer: string): DeepQuestion {
  const text = `${question.text.trim()}\n\n${answer.trim()}`;
  return { ...question, text, turns: [...question.turns, textTurn('model', asked), textTurn('user', text)] };
}
