import type { GenerateCall } from '#core/call';
import { isObject, type Json, type JsonObject } from '#core/json';
import { valueIn } from '#kit/json/value-in';
import { most, type Prompt, readPrompt } from './prompt.ts';
import { cited, findAnswers, shortened } from './extract.ts';
import { findingsIn } from './findings.ts';
import { describeMedia } from './media.ts';
import { isOwn, phrase } from './phrases.ts';
import { toRepeat } from './repeat.ts';
import { schemaValue } from './schema/value.ts';
import { conforms, namesOf } from './schema/conforms.ts';
import { Work } from './schema/work.ts';
import { empty, type Sentence, wordsOf } from './sentences.ts';
import { summaryOf, wantsSummary } from './summary.ts';
import { demandedUses, namedUses, type Use } from './tool-use.ts';

/** The content of an answer, before it is truncated, paced and counted. */
export interface Answer {
  /** The reasoning, one sentence per step. */
  readonly thoughts: readonly string[];
  readonly text: string;
  /** Whether the answer is incomplete. */
  readonly cut?: boolean;
  readonly uses: readonly Use[];
}

/**
 * The rules in order; the first that applies answers. README.md describes them.
 * @param variant selects among wordings of the same answer
 * @throws Fault `invalid` for a schema that no value satisfies and for an unknown tool
 */
export function answer(call: GenerateCall): (variant: number) => Answer {
  const prompt = readPrompt(call);
  const demanded = demandedUses(call, prompt.ending);
  if (demanded.length > 0) return used(demanded, 'I have to call a tool');
  if (call.output.type !== 'text') {
    const named = prompt.results.length === 0 ? namedUses(call, prompt.ending) : [];
    if (named.length > 0) return used(named, 'The message names a tool');
    const json = written(call, prompt);
    const value: unknown = call.output.type === 'schema' && call.output.bare ? JSON.parse(json) : undefined;
    const text = typeof value === 'string' ? value : json;
    return () => ({ thoughts: ['The answer has to be JSON.', 'I take its values from the message where they stand there.'], text, uses: [] });
  }
  if (prompt.results.length > 0) return toldBy(prompt);
  const repeated = wordsToRepeat(prompt);
  if (repeated !== undefined)
    return () => ({
      thoughts: ['I am asked to repeat something.', 'I give it back as it is.'],
      text: repeated,
      cut: prompt.cut && prompt.message.trimEnd().endsWith(repeated),
      uses: [],
    });
  const named = namedUses(call, prompt.ending);
  if (named.length > 0) return used(named, 'The message names a tool');
  return spoken(prompt);
}

function used(uses: readonly Use[], why: string): () => Answer {
  const names = uses.map((use) => use.name.slice(0, 100)).join(' and ');
  return () => ({ thoughts: [`${why}: ${names}.`, 'Its arguments come from the message where they stand there.'], text: '', uses });
}

function wordsToRepeat({ message, orders }: Prompt): string | undefined {
  const repeated = toRepeat(message);
  if (repeated !== undefined) return repeated;
  const order = orders.findLast((one) => /^\s*(?:please |always |just |only )?(?:say|repeat|echo|reply|respond|answer)(?!\p{L})/iu.test(one.slice(0, 200)));
  return order === undefined ? undefined : toRepeat(order.replace(/^\s*always /i, ''));
}

function toldBy({ results }: Prompt): (variant: number) => Answer {
  return (variant) => {
    const lines = results.map((result) => {
      const text = result.parts.flatMap((part) => (part.type === 'text' ? [part.text] : part.type === 'media' ? [describeMedia(part)] : [])).join('\n');
      return `${result.failed ? phrase('failed', variant) : ''}${text === '' ? phrase('silence', variant) : text}`;
    });
    return { thoughts: ['The tool has answered.', 'I pass on what it said.'], text: lines.join('\n'), uses: [] };
  };
}

const greeting =
  /^(?:hi|hello|hey|hiya|howdy|yo|greetings|good (?:morning|day|afternoon|evening)|bonjour|salut|hallo|guten tag|hola|ciao|olá|привет|здравствуйте|你好|こんにちは|안녕하세요|مرحبا|नमस्ते)(?![\p{L}\p{N}])/iu;
const aboutMe =
  /(?:^|[\s,])(?:who|what) are you|what(?: else)? can you do|what do you do|how (?:can|do) you (?:help|work)|are you (?:a|an|real|there|chatgpt|gpt|human)|what(?:'s|’s| is) your name|(?:which|what) model|introduce yourself|^\/?help[.!?]?$/i;
const thanks = /^(?:thanks|thank you|thx|cheers|merci|danke|gracias|bye|goodbye|ok|okay)(?![\p{L}\p{N}])/iu;
const statement = /^(?:my|i am|i'm|i’m|i have|i live|i like|i work|i was|remember|note|keep in mind|for your information|fyi)(?![\p{L}\p{N}])/iu;

function spoken(prompt: Prompt): (variant: number) => Answer {
  const { question, media } = prompt;
  if (media.length > 0) return reply(() => seen(prompt), 'There is something that is not text.', 'I can name its type and size.');
  if (wantsSummary(prompt)) {
    const summary = summaryOf(prompt);
    if (summary !== '') return reply(() => summary, 'I am asked for a summary.', 'I give the sentences that say most.');
  }
  const short = question.length <= 100 ? question : '';
  if (aboutMe.test(short)) return reply((variant) => phrase('self', variant), 'I am asked about myself.', 'I say what I am.');
  if (wantsFollowUps(question)) return reply(() => followUps(prompt.sentences), 'I am asked what could be asked next.', 'I ask about what was spoken of.');
  const greets = greeting.test(short) && short.length <= 40;
  const hello = reply((variant) => phrase('hello', variant), 'This is a greeting.', 'I greet back and say what I am.');
  if (greets && !/[?？]/.test(short)) return hello;
  if (statement.test(question) && !/[?？]/.test(question) && question.length <= 1000)
    return reply((variant) => phrase('noted', variant), 'I am told something.', 'I can find it again later.');
  const sources = prompt.sentences.filter((sentence) => sentence.by !== 'model' || !isOwn(sentence.text));
  const found = findAnswers(question, sources);
  if (found.length > 0)
    return reply((variant) => quoted(found, variant), 'I look for what was said about this.', 'I give the sentence that shares most with the question.');
  if (greets) return hello;
  if (thanks.test(short) && short.length <= 40) return reply((variant) => phrase('thanks', variant), 'I am thanked.', 'I stay polite.');
  const passages = prompt.sentences.some((sentence) => sentence.passage !== undefined);
  return reply((variant) => phrase(passages ? 'noPassage' : 'cannot', variant), 'Nothing I was given speaks of this.', 'I say that I cannot.');
}

const reply =
  (text: (variant: number) => string, ...thoughts: string[]) =>
  (variant: number): Answer => ({ thoughts, text: text(variant), uses: [] });

function seen({ media }: Prompt): string {
  const list = media.slice(0, 20).map(describeMedia);
  const more = media.length > list.length ? `, and ${media.length - list.length} more` : '';
  return `I was given ${list.join('; ')}${more}. As Dragoman’s built-in model I see no further than that.`;
}

function quoted(found: readonly Sentence[], variant: number): string {
  const best = found[0]!;
  if (best.passage !== undefined) return cited(found);
  const from = best.by === 'user' ? 'told' : best.by === 'system' ? 'given' : 'earlier';
  return `${phrase(from, variant)}“${shortened(best.text)}”`;
}

/** JSON in the requested form: taken from the message, else made from the schema, else an object of the keys that the message names. */
function written(call: GenerateCall, prompt: Prompt): string {
  const ready = readyMade(prompt);
  let inWords: string | undefined;
  const words = () => (inWords ??= (prompt.results.length > 0 ? toldBy(prompt)(0) : spoken(prompt)(0)).text);
  const results = prompt.results.flatMap((result) => result.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))).join('\n');
  const values = `${results.slice(0, most)}\n${prompt.ending}`;
  const made = (schema: JsonObject, field: string) =>
    JSON.stringify(schemaValue(schema, { findings: findingsIn(values, namesOf(schema)), question: prompt.ending.trim(), prose: words }, field));
  if (call.output.type === 'schema') {
    const { schema } = call.output;
    const work = new Work(5000);
    return ready !== undefined && conforms(schema, schema, ready, work) && !work.isOver ? JSON.stringify(ready) : made(schema, 'output.schema');
  }
  if (isObject(ready)) return JSON.stringify(ready);
  const keys = keysIn(prompt.ending);
  if (keys.length === 0) return JSON.stringify({ answer: words() });
  return made({ type: 'object', properties: Object.fromEntries(keys.map((key) => [key, {}])), required: keys }, 'output');
}

/** JSON in the message, or JSON that it asks to repeat. */
function readyMade({ message }: Prompt): Json | undefined {
  const text = (toRepeat(message) ?? message).slice(0, 1 << 14);
  const [from, to] = [text.search(/[{[]/), Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))];
  const whole = valueIn(text);
  return (whole === undefined ? valueIn(text.slice(Math.max(0, from), to + 1)) : whole) as Json | undefined;
}

/** The requested keys of a message: `with the keys "city" and "country"`, `fields: city, country`. */
function keysIn(message: string): string[] {
  const text = message.slice(-4000);
  const named = /(?:keys?|fields?|properties|property|members?|attributes?)(?: named| called)?[ :]{1,3}(?=["'`\p{L}_])/iu.exec(text);
  if (!named) return [];
  const keys: string[] = [];
  const pattern = /["'`]?([\p{L}_][\p{L}\p{N}_-]{0,60})["'`]?(?:\s?(?:,|and|&|or)\s{0,2}(?:and\s)?)?/uy;
  pattern.lastIndex = named.index + named[0].length;
  for (let match = pattern.exec(text); match && keys.length < 50; match = pattern.exec(text)) {
    keys.push(match[1]!);
    if (/^["'`]?[\p{L}\p{N}_-]+["'`]?$/u.test(match[0])) break;
  }
  return [...new Set(keys)];
}

const asking = /^(?:please )?(?:propose|suggest|write|give(?: me)?|list) (?:(?:three|3|some) )?follow-up questions?\b/i;

/** Whether a message asks what could be asked next. */
const wantsFollowUps = (question: string): boolean => asking.test(question.slice(0, 200));

/** Most sentences of the conversation that are looked at. */
const mostSentences = 50;

/** Three questions about the words that the end of the conversation is about. */
function followUps(sentences: readonly Sentence[]): string {
  const topics: string[] = [];
  const seen = new Set(['user', 'assistant', 'system']);
  for (const { text } of sentences.filter(({ by }) => by !== 'system').slice(-mostSentences))
    for (const [word] of text.slice(0, 1000).matchAll(/[\p{L}\p{M}]{4,30}/gu)) {
      const stem = wordsOf(word).join(''); // of several where each character is a word
      if (seen.has(stem) || empty.has(stem)) continue;
      seen.add(stem);
      topics.push(word);
    }
  const [first = 'this', second = first, third = second] = topics;
  return [`What else is there to know about ${first}?`, `Can you give an example of ${second}?`, `Why does ${third} matter here?`].join('\n');
}
