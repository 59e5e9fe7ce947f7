import { valueIn } from '#kit/json/value-in';

/** Tasks that are added to a plan at once. */
export const mostTasks = 5;
const longestTask = 500;
/** Characters of an answer that are read. */
const mostRead = 10_000;

/**
 * The tasks in a model's answer: a list in JSON, of texts or of objects with a text in them, or lines with numbers or dashes before them. None where it has
 * neither.
 * @param known tasks that there are: those are left out
 */
export function tasksIn(answer: string, known: readonly string[] = []): readonly string[] {
  const text = answer.slice(0, mostRead);
  const tasks = listIn(text) ?? text.split('\n').flatMap(inLine);
  const seen = new Set(known.map(bare));
  const fresh = tasks.filter((task) => {
    const told = bare(task);
    if (told === '' || seen.has(told)) return false;
    seen.add(told);
    return true;
  });
  return fresh.slice(0, mostTasks).map((task) => task.slice(0, longestTask).toWellFormed());
}

/** The questions that a message asks, where it asks several; else the message is one task. */
export function tasksAskedIn(message: string): readonly string[] {
  const text = message.slice(0, mostRead);
  const asked: string[] = [];
  let from = 0;
  for (const { index } of [...text.matchAll(/[?？](?=\s|$)|？|[.!](?=\s)|[。！\n]/gu), { index: text.length - 1 }]) {
    const sentence = text.slice(from, index + 1).trim();
    if (sentence.endsWith('?') || sentence.endsWith('？')) asked.push(sentence);
    from = index + 1;
  }
  const tasks = [...new Map(asked.map((one) => [bare(one), one])).values()].filter((one) => bare(one) !== '');
  const chosen = tasks.length > 1 ? tasks.slice(0, mostTasks) : [message.trim()];
  return chosen.map((task) => task.slice(0, longestTask).toWellFormed());
}

/** The list in a text: everything from its first bracket to its last. */
function listIn(text: string): readonly string[] | undefined {
  const [from, to] = [text.indexOf('['), text.lastIndexOf(']')];
  const [open, close] = [text.indexOf('{'), text.lastIndexOf('}')];
  const whole = open >= 0 && open < from && close > to ? valueIn(text.slice(open, close + 1)) : undefined;
  const list = whole === undefined ? (from < 0 || to < from ? undefined : valueIn(text.slice(from, to + 1))) : firstList(whole);
  if (!Array.isArray(list)) return undefined;
  return (list as readonly unknown[]).slice(0, 100).flatMap((one) => {
    const task = typeof one === 'string' ? one : firstText(one);
    return task === undefined ? [] : [tidy(task)];
  });
}

const membersOf = (value: unknown): readonly unknown[] => (typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.values(value) : []);

const firstList = (value: unknown): unknown => membersOf(value).find((one) => Array.isArray(one));

/** The longest, as an object may have an id beside its text. */
const firstText = (value: unknown): string | undefined =>
  membersOf(value)
    .filter((one) => typeof one === 'string')
    .toSorted((a, b) => b.length - a.length)[0];

function inLine(line: string): readonly string[] {
  const mark = /^[\s>#]{0,20}(?:\*{0,2}\(?\d{1,2}[.):]\*{0,2}|[-*•–])\s{1,10}(?=\S)/u.exec(line.slice(0, 100));
  return mark ? [tidy(line.slice(mark[0].length))] : [];
}

const tidy = (task: string): string =>
  task
    .slice(0, 2 * longestTask)
    .replaceAll('**', '')
    .replaceAll(/\s+/g, ' ')
    .trim();

/** Two tasks that differ in case, spaces and marks alone are one. */
const bare = (task: string): string =>
  task
    .slice(0, 2 * longestTask)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
