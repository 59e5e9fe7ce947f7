import type { GenerateCall } from '#core/call';
import type { MediaPart, Part, ToolResultPart, Turn } from '#core/conversation';
import { valueIn } from '#kit/json/value-in';
import { sentencesOf, type Sentence } from './sentences.ts';

/** The input of the rules: the user's last message and its context. */
export interface Prompt {
  /** The first 64 KB of the text of the user's last turn. */
  readonly message: string;
  /** Whether the text is longer than that. */
  readonly cut: boolean;
  /** Its last 64 KB. */
  readonly ending: string;
  readonly question: string;
  /** The images, sounds and files of that turn. */
  readonly media: readonly MediaPart[];
  /** The tool results, if they are the end of the conversation. */
  readonly results: readonly ToolResultPart[];
  /** The beginnings of the system turns. */
  readonly orders: readonly string[];
  /** The sentences of all earlier turns and of the rest of the message: at most their last 64 KB. */
  readonly sentences: readonly Sentence[];
}

/** Most UTF-16 units of text that a rule considers. Every rule is linear in it, so one call holds the event loop for some 20 ms at worst. */
export const most = 1 << 16;
const mostParts = 10_000;

export function readPrompt(call: GenerateCall): Prompt {
  const lastModel = call.turns.findLastIndex((turn) => turn.role === 'model');
  const last = call.turns.findLastIndex((turn) => turn.role === 'user' && turn.parts.some((part) => part.type === 'text' || part.type === 'media'));
  const turn = call.turns[last] ?? call.turns.at(-1);
  const text = turn ? unescaped(textOf(turn)) : '';
  const ending = text.slice(-most);
  const { question, rest } = questionOf(ending);
  const sentences = [...earlier(call.turns.toSpliced(last, last < 0 ? 0 : 1), most - rest.length), ...sentencesOf(rest, 'user')];
  return {
    message: text.slice(0, most),
    cut: text.length > most,
    ending,
    question,
    media: (turn?.parts ?? []).filter((part) => part.type === 'media').slice(0, 100),
    results: resultsOf(call.turns, lastModel),
    orders: call.turns.flatMap((one) => (one.role === 'system' ? [textOf(one).slice(0, most)] : [])).slice(0, 100),
    sentences,
  };
}

function textOf(turn: Turn): string {
  const texts = turn.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length === 1 ? texts[0]! : texts.join('\n');
}

/** Unwraps a message that is one JSON string: some coding agents send the user's input in that form. */
function unescaped(text: string): string {
  const whole = text.length <= most ? text.trim() : '';
  if (!whole.startsWith('"') || !whole.endsWith('"')) return text;
  const value = valueIn(whole);
  return typeof value === 'string' ? value : text;
}

function resultsOf(turns: readonly Turn[], lastModel: number): ToolResultPart[] {
  const results = (parts: readonly Part[]) => parts.filter((part) => part.type === 'tool-result');
  if (results(turns.at(-1)?.parts ?? []).length === 0) return [];
  return turns.slice(lastModel + 1).flatMap((turn) => results(turn.parts));
}

/** Reads the conversation backwards until there is enough. */
function earlier(turns: readonly Turn[], room: number): Sentence[] {
  const found: Sentence[][] = [];
  let left = room;
  let parts = mostParts;
  for (let at = turns.length - 1; at >= 0 && left > 0 && parts > 0; at--) {
    const { role, parts: turnParts } = turns[at]!;
    for (let index = turnParts.length - 1; index >= 0 && left > 0 && parts > 0; index--, parts--) {
      for (const text of texts(turnParts[index]!)) {
        const considered = text.slice(-left);
        left -= considered.length;
        found.push(sentencesOf(considered, role));
      }
    }
  }
  return found.toReversed().flat();
}

function texts(part: Part): string[] {
  if (part.type === 'text') return [part.text];
  return part.type === 'tool-result' ? part.parts.flatMap((inner) => (inner.type === 'text' ? [inner.text] : [])) : [];
}

/** Finds the question in a message that may contain passages: the text after `Question:`, else the last question, else the last paragraph. */
function questionOf(message: string): { question: string; rest: string } {
  let end = 0;
  for (const { index, 0: label } of message.matchAll(/^[ \t]{0,8}(?:question|query|q)[ \t]{0,4}:/gim)) end = index + label.length;
  if (end > 0) return { question: message.slice(end).trim(), rest: message.slice(0, 1 + message.lastIndexOf('\n', end - 1)) };
  const lastQuestion = sentencesOf(message, 'user').findLast(
    ({ text, passage }, at, { length }) => (passage === undefined || at === length - 1) && /[?？]["”')]?$/.test(text),
  );
  if (lastQuestion) return { question: lastQuestion.text, rest: message.slice(0, lastQuestion.from) + '\n' + message.slice(lastQuestion.to) };
  const paragraph = message.trimEnd().lastIndexOf('\n\n');
  return { question: message.slice(paragraph + 1).trim(), rest: paragraph < 0 ? '' : message.slice(0, paragraph) };
}
