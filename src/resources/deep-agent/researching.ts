import { textTurn, type ToolResultPart, type Turn } from '#core/conversation';
import type { GenerateCall } from '#core/call';
import { objectIn } from '#kit/json/foreign';
import { asWritten } from '#kit/json/numbers';
import type { JsonObject } from '#core/json';
import type { ModelAnswer, Run } from '#core/run';
import { citationMarksIn } from '#kit/text/citation-marks';
import type { DeepQuestion } from '../deep-question.ts';
import { framed } from '../material-frame.ts';
import { systemTurn } from '../system-turn.ts';
import { renumbered } from './cited-text.ts';
import { answerNow, toResearch } from './instructions.ts';
import { callOf } from './question.ts';
import { entryOf, Sources, type Source } from './sources.ts';
import type { FoundOutcome, ResearchTool } from './tools.ts';

export type Finding = {
  readonly task: string;
  /** With the numbers of `sources` in it. */
  readonly text: string;
  readonly sources: readonly Source[];
};

export interface Research {
  readonly task: string;
  readonly question: DeepQuestion;
  /** Those that there are, with what they need of what was found so far. */
  readonly toolsFor: (sources: Sources) => readonly ResearchTool[];
  /** Bytes of material and results that a prompt has room for. */
  readonly room: number;
}

/** Answers of the model for one task. */
const mostRounds = 8;
/** Calls of one answer. */
const mostCalls = 8;

/**
 * Works on one task: looks it up wherever that is possible, then lets the model call tools until it writes down what it found. A model that calls none answers
 * from what was looked up.
 */
export async function researched(run: Run, { task, question, toolsFor, room }: Research): Promise<Finding> {
  const sources = new Sources();
  const tools = toolsFor(sources);
  const looking = tools.filter(({ looksUp }) => looksUp);
  const first = await run.all(looking, (tool, at) => called(run, tool, { id: `look-${at + 1}`, args: { query: task.slice(0, 400).toWellFormed() } }));
  let left = room;
  const shown = first.map((outcome) => {
    const text = told(outcome, sources, Math.floor(room / 2 / first.length));
    left -= Buffer.byteLength(text);
    return text;
  });
  const turns: Turn[] = [
    ...systemTurn(toResearch, question.today),
    ...(task === question.text ? [] : [textTurn('user', framed(`The message that the task is a part of:\n\n${question.text.slice(0, 4000).toWellFormed()}`))]),
    ...(shown.length > 0 ? [textTurn('user', framed(shown.join('\n\n')))] : []),
    textTurn('user', task),
  ];
  for (let round = 1; ; round++) {
    const isLast = round === mostRounds || left <= 0;
    const declared = isLast ? [] : tools.map((tool) => tool.declared);
    const asked: Omit<GenerateCall, 'stream'> = {
      ...callOf(question),
      turns: isLast && round > 1 ? [...turns, textTurn('user', answerNow)] : turns,
      tools: declared,
    };
    const answer = await run.answer(`research/${round}`, asked, { name: 'research', isQuiet: true });
    if (isLast || answer.calls.length === 0) return findingIn(task, answer, sources);
    const results = await resultsOf(run, tools, answer, round);
    const most = Math.max(2000, Math.floor(left / 2 / results.length));
    const parts = results.map(({ id, outcome }) => {
      const text = told(outcome, sources, most);
      left -= Buffer.byteLength(text);
      return resultOf(id, text, outcome.isError);
    });
    turns.push({ role: 'model', parts: answer.parts }, { role: 'user', parts });
  }
}

async function resultsOf(run: Run, tools: readonly ResearchTool[], answer: ModelAnswer, round: number) {
  const byName = new Map(tools.map((tool) => [tool.declared.name, tool]));
  return run.all(answer.calls, async ({ id, name, json }, at): Promise<{ readonly id: string; readonly outcome: FoundOutcome }> => {
    const tool = byName.get(name);
    const args = objectIn(json) as JsonObject | undefined;
    if (at >= mostCalls) return { id, outcome: refused(`At most ${mostCalls} tools are called at once: this one was not.`) };
    if (!tool) return { id, outcome: refused('There is no such tool.') };
    if (!args) return { id, outcome: refused('The arguments are no JSON object.') };
    return { id, outcome: await called(run, tool, { id: `${round}-${at + 1}`, args }) };
  });
}

const refused = (text: string): FoundOutcome => ({ text, isError: true });

/** Calls a tool, once. What it found is a step of its own, as the outcome of a tool is a text: where the call was made before, it is read there. */
async function called(run: Run, tool: ResearchTool, { id, args }: { readonly id: string; readonly args: JsonObject }): Promise<FoundOutcome> {
  const { declared, name = declared.name, server, isReadOnly, needsApproval, approvedWith } = tool;
  const kept = (found: readonly Source[]) => run.step(`found/${id}`, async () => found);
  let found: readonly Source[] | undefined;
  const outcome = await run.tool(
    {
      call: `${run.place}.${id}`.replaceAll('/', '.'),
      tool: name,
      server,
      arguments: asWritten(args) as JsonObject,
      isReadOnly,
      needsApproval,
      ...(approvedWith === undefined ? {} : { approvedWith }),
    },
    async (asking) => {
      const { found: sources = [], ...told } = await tool.work(args, asking);
      found = sources;
      if (tool.finds) await kept(sources);
      return told;
    },
  );
  return tool.finds ? { ...outcome, found: found ?? (await kept([])) } : outcome;
}

/** An outcome as the model reads it: sources under their numbers. @param most bytes, roughly */
function told({ text, found }: FoundOutcome, sources: Sources, most: number): string {
  if (!found || found.length === 0) return text.slice(0, most).toWellFormed();
  const each = Math.floor(most / found.length);
  return found.map((source) => entryOf(source, sources.add(source), each)).join('\n\n');
}

const resultOf = (id: string, text: string, failed: boolean): ToolResultPart => ({
  type: 'tool-result',
  id,
  parts: [{ type: 'text', text: text === '' ? '(no text)' : text }],
  ...(failed ? { failed } : {}),
});

/** With the sources that it cites, under new numbers; where it cites none, with the first that were found. */
function findingIn(task: string, { text }: ModelAnswer, found: Sources): Finding {
  const marks = citationMarksIn(text);
  const cited = new Sources();
  const numbers = new Map<number, number>();
  for (const number of marks.flatMap((mark) => mark.numbers)) {
    const source = found.at(number);
    if (source) numbers.set(number, cited.add(source));
  }
  const sources = cited.all.length > 0 ? cited.all : found.all.slice(0, mostUncited);
  return { task, text: renumbered(text, marks, (number) => numbers.get(number)).trim(), sources };
}

const mostUncited = 10;
