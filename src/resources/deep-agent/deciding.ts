import { Fault } from '#core/fault';
import type { Run } from '#core/run';
import { textOf } from '#core/json';
import type { DeepQuestion } from '../deep-question.ts';
import { systemTurn } from '../system-turn.ts';
import { enough, questionMark, toClarify, toPlan, toReview } from './instructions.ts';
import { callOf, earlierTurns, withAnswer } from './question.ts';
import { foundTurns, gathered } from './reporting.ts';
import type { Finding } from './researching.ts';
import { tasksAskedIn, tasksIn } from './tasks.ts';

/* What the model that leads a run decides. Each of its answers may be something else than what it was asked for: research then goes on in the plainest way. */

const longestQuestion = 1000;

/** Asks the user, once, where the model says that the question cannot be researched as it stands. @returns the question with what the user answered */
export async function clarified(run: Run, question: DeepQuestion): Promise<DeepQuestion> {
  const turns = [...systemTurn(toClarify, question.today), ...earlierTurns(question), ...question.turns.slice(-1)];
  const { text } = await run.answer('clarify', { ...callOf(question), turns }, { name: 'clarify', isQuiet: true });
  const said = text.trim();
  if (!said.startsWith(questionMark)) return question;
  const message = said.slice(questionMark.length).trim().slice(0, longestQuestion).toWellFormed();
  if (message === '') return question;
  const schema = { type: 'object', properties: { answer: { type: 'string', maxLength: 10_000 } }, required: ['answer'] };
  const { action, content } = await run.ask({ question: 'clarify', message, schema });
  const answer = action === 'accept' ? textOf(content?.['answer']).trim() : '';
  return answer === '' ? question : withAnswer(question, message, answer);
}

/** The tasks that research begins with. */
export async function planned(run: Run, question: DeepQuestion): Promise<readonly string[]> {
  const turns = [...systemTurn(toPlan, question.today), ...earlierTurns(question), ...question.turns.slice(-1)];
  const { text } = await run.answer('plan', { ...callOf(question), turns }, { name: 'plan', isQuiet: true });
  const tasks = tasksIn(text);
  return tasks.length > 0 ? tasks : tasksAskedIn(question.text);
}

interface SoFar {
  readonly question: DeepQuestion;
  readonly findings: readonly Finding[];
  readonly known: readonly string[];
  readonly room: number;
  readonly cycle: number;
}

/** Tasks for what is missing; none: the report can be written. What the model cannot do is no reason to lose what was found. */
export async function furtherTasks(run: Run, { question, findings, known, room, cycle }: SoFar): Promise<readonly string[]> {
  const turns = [...systemTurn(toReview, question.today), ...earlierTurns(question), ...foundTurns(gathered(findings), room), ...question.turns.slice(-1)];
  try {
    const { text } = await run.answer(`review/${cycle}`, { ...callOf(question), turns }, { name: 'review', isQuiet: true });
    return text.trim().toUpperCase().startsWith(enough) ? [] : tasksIn(text, known);
  } catch (error) {
    if (isEnding(error, run)) throw error;
    return [];
  }
}

const endingCodes: ReadonlySet<string> = new Set(['quota-spent', 'unauthenticated', 'forbidden']);

/** Whether a failure ends the run: the others concern one part of it. */
export const isEnding = (error: unknown, { signal }: Run): boolean => signal.aborted || !(error instanceof Fault) || endingCodes.has(error.code);
