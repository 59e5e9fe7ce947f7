import { textTurn } from '#core/conversation';
import { Fault } from '#core/fault';
import type { JsonObject } from '#core/json';
import type { Run, RunEnd } from '#core/run';
import { citationMarksIn } from '#kit/text/citation-marks';
import type { DeepQuestion } from '../deep-question.ts';
import { framed } from '../material-frame.ts';
import { systemTurn } from '../system-turn.ts';
import { CitedText, renumbered } from './cited-text.ts';
import { toReport } from './instructions.ts';
import { callOf, earlierTurns } from './question.ts';
import type { Finding } from './researching.ts';
import { citedOf, entryOf, Sources } from './sources.ts';

/** What was found, as a model is given it. */
export interface Gathered {
  /** A section for each task, with the numbers of `sources` in it. */
  readonly findings: string;
  readonly sources: Sources;
}

const mostSources = 60;
const leastEntry = 400;

/** The findings of all researchers under one numbering: sources that are cited come first. */
export function gathered(findings: readonly Finding[]): Gathered {
  const sources = new Sources();
  const sections = findings.map(({ task, text, sources: own }) => {
    const marks = citationMarksIn(text);
    const numbers = new Map<number, number>();
    for (const number of marks.flatMap((mark) => mark.numbers)) {
      const source = own[number - 1];
      if (source && sources.all.length < mostSources) numbers.set(number, sources.add(source));
    }
    return `Task: ${task}\n${renumbered(text, marks, (number) => numbers.get(number))}`;
  });
  if (sources.all.length === 0) for (const source of findings.flatMap((one) => one.sources).slice(0, mostSources)) sources.add(source);
  return { findings: sections.join('\n\n'), sources };
}

/** What was found, as turns before the question. @param room bytes */
export function foundTurns({ findings, sources }: Gathered, room: number) {
  const each = Math.max(leastEntry, Math.floor((room * 0.6) / Math.max(1, sources.all.length)));
  const entries = sources.all.map((source, at) => entryOf(source, at + 1, each));
  const most = Math.floor(room * 0.4);
  const shown = findings.length > most ? `${findings.slice(0, most).toWellFormed()}…` : findings;
  return [
    ...(shown === '' ? [] : [textTurn('user', framed(`What was found:\n\n${shown}`))]),
    ...(entries.length > 0 ? [textTurn('user', framed(entries.join('\n\n')))] : []),
  ];
}

/**
 * Writes the report, and tells which sources it cites and where. A report that cites nothing, although the findings do, is followed by the findings: what it
 * says can then be checked.
 * @throws Fault `upstream-failed` where nothing was written and nothing was found
 */
export async function reported(run: Run, question: DeepQuestion, findings: readonly Finding[], room: number): Promise<RunEnd> {
  const found = gathered(findings);
  const { sources } = found;
  const filter = () => new CitedText((number) => sources.at(number) !== undefined);
  const turns = [
    ...systemTurn(question.instructions),
    ...systemTurn(toReport, question.today),
    ...earlierTurns(question),
    ...foundTurns(found, room),
    ...question.turns.slice(-1),
  ];
  const answer = await run.answer('report', { ...callOf(question), turns }, { name: 'report', shown: filter() });
  const cited = filter();
  const text = cited.take(answer.text) + cited.end();
  const isCited = (words: string) => citationMarksIn(words).some(({ numbers }) => numbers.some((number) => sources.at(number)));
  const isEmpty = text.trim() === '';
  const added = isEmpty ? found.findings : !isCited(text) && isCited(found.findings) ? `\n\n${found.findings}` : '';
  const message = `${text}${added}`;
  if (message.trim() === '') throw new Fault('upstream-failed', 'The model wrote no report, and nothing was found.');
  const citations = citationsIn(message, sources);
  await run.step('report/citations', async () => {
    if (added !== '') run.emit({ event: 'message.delta', data: { delta: added } });
    if (cited.dropped > 0) run.emit({ event: 'warning', data: { message: droppedWarning(cited.dropped) } });
    for (const citation of citations) run.emit({ event: 'citation', data: citation });
  });
  return { message, citations };
}

const droppedWarning = (count: number): string =>
  count === 1
    ? 'The report named a source that there is not: its number was taken out.'
    : `The report named ${count} sources that there are not: their numbers were taken out.`;

/** The sources that a text cites, in the order of their numbers. */
function citationsIn(message: string, sources: Sources): readonly JsonObject[] {
  const places = new Map<number, (readonly [number, number])[]>();
  for (const { numbers, start, end } of citationMarksIn(message))
    for (const number of numbers) {
      const known = places.get(number);
      if (known) known.push([start, end]);
      else places.set(number, [[start, end]]);
    }
  return [...places.keys()]
    .toSorted((a, b) => a - b)
    .flatMap((number) => {
      const source = sources.at(number);
      return source ? [citedOf(source, number, places.get(number)!)] : [];
    });
}
