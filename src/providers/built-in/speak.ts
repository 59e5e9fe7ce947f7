import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '#kit/async/clock';
import type { Tokens } from '#kit/tokens/index';
import type { FinishReason, GenerateEvent, Events } from '#core/event';
import { stoppedAt } from '#dialects/shared/stop-sequences';
import { logprobsOf } from './logprobs.ts';
import type { Answer } from './rules.ts';

export interface Manner {
  readonly tokens: Tokens;
  readonly clock: Clock;
  /** Absent: as fast as they are read. */
  readonly tokensPerSecond?: number;
  readonly signal: AbortSignal;
  /** Maximum tokens per candidate, thoughts included. */
  readonly maxTokens?: number;
  readonly stop: readonly string[];
  /** Of the conversation, so that the IDs of tool calls differ from turn to turn. */
  readonly turns: number;
  /** Alternatives per token; absent: no log probabilities. */
  readonly logprobs?: number;
}

/** The generated tokens. */
export interface Spoken {
  output: number;
  thought: number;
}

/** The longest answer of this model, in UTF-16 units. */
const longest = 1 << 15;

/**
 * Emits all candidates concurrently, a word of each in turn, at `tokensPerSecond` for each. Counts into `spoken`.
 * @throws the signal's reason, as soon as it is aborted
 */
export async function* speak(answers: readonly Answer[], manner: Manner, spoken: Spoken): AsyncGenerator<Events> {
  const { clock, signal, tokensPerSecond } = manner;
  const split = remembered((text) => manner.tokens.split(text));
  let speakers = answers.map((answer, candidate) => words(answer, candidate, split, manner, spoken));
  let due = clock.monotonic();
  let rested = due;
  for (let round = 1; speakers.length > 0; round++) {
    const speaking: typeof speakers = [];
    let most = 0;
    for (const speaker of speakers) {
      signal.throwIfAborted();
      const { done, value } = speaker.next();
      if (done) continue;
      speaking.push(speaker);
      most = Math.max(most, value.tokens);
      yield [value.event];
      if (clock.monotonic() - rested > 8) {
        await setImmediate();
        rested = clock.monotonic();
      }
    }
    speakers = speaking;
    if (tokensPerSecond) {
      due += (most * 1000) / tokensPerSecond;
      const wait = due - clock.monotonic();
      if (wait > 0) await clock.sleep(wait, signal);
    } else if (round % 32 === 0) await setImmediate();
  }
}

/** Candidates often have the same text. */
function remembered(split: (text: string) => readonly string[]): (text: string) => readonly string[] {
  const known = new Map<string, readonly string[]>();
  return (text) => {
    const tokens = known.get(text) ?? split(text);
    known.set(text, tokens);
    return tokens;
  };
}

interface Word {
  readonly event: GenerateEvent;
  readonly tokens: number;
}

function* words(answer: Answer, candidate: number, split: (text: string) => readonly string[], manner: Manner, spoken: Spoken): Generator<Word, void> {
  const { tokens, maxTokens = Infinity, logprobs } = manner;
  let left = maxTokens;
  const spend = (count: number) => {
    left -= count;
    spoken.output += count;
  };
  const finished = (reason: FinishReason): Word => ({ event: { type: 'finished', candidate, reason, raw: reason }, tokens: 0 });

  const thoughts = split(answer.thoughts.join(' '));
  for (const { text, count } of grouped(thoughts.slice(0, left))) {
    spend(count);
    spoken.thought += count;
    yield { event: { type: 'thought', candidate, text, tokens: count }, tokens: count };
  }
  if (left < 1) return void (yield finished('length'));

  const { text, found } = untilStop(answer.text.slice(0, longest).toWellFormed(), manner.stop);
  const pieces = split(text);
  let from = 0;
  for (const { text: word, count } of grouped(pieces.slice(0, left))) {
    spend(count);
    const scores = logprobs === undefined ? {} : { logprobs: logprobsOf(pieces.slice(from, from + count), from, logprobs) };
    from += count;
    yield { event: { type: 'text', candidate, text: word, tokens: count, ...scores }, tokens: count };
  }
  if (from < pieces.length) return void (yield finished('length'));
  if (found !== undefined) return void (yield { event: stoppedAt(candidate, found), tokens: 0 });
  if (answer.cut || answer.text.length > longest) return void (yield finished('length'));

  for (const [call, use] of answer.uses.entries()) {
    const id = `call_${createHash('sha256').update(`${manner.turns} ${candidate} ${call} ${use.name} ${use.json}`).digest('hex').slice(0, 24)}`;
    const named = tokens.count(use.name);
    if (left < named) return void (yield finished('length'));
    spend(named);
    const piece = { type: 'tool-call', candidate, call, id, ...(use.custom ? { custom: true } : {}) } as const;
    yield { event: { ...piece, name: use.name, json: '', tokens: named, ...(use.extra ? { extra: use.extra } : {}) }, tokens: named };
    const written = split(use.json.slice(0, longest).toWellFormed());
    const cut = written.length > left || use.json.length > longest;
    for (const { text: json, count } of grouped(written.slice(0, left))) {
      spend(count);
      yield { event: { ...piece, json, tokens: count }, tokens: count };
    }
    if (cut) return void (yield finished('length'));
  }
  return void (yield finished(answer.uses.length > 0 ? 'tool' : 'stop'));
}

/**
 * Groups tokens to words: a word starts at a token that starts with white space, and has at most four tokens. Incomplete characters are held until they are
 * whole.
 */
function* grouped(tokens: readonly string[]): Generator<{ text: string; count: number }> {
  let text = '';
  let count = 0;
  for (const token of tokens) {
    if (count > 0 && text !== '' && token !== '' && (count >= 4 || /^\s/.test(token))) {
      yield { text, count };
      text = '';
      count = 0;
    }
    text += token;
    count++;
  }
  if (count > 0) yield { text, count };
}

/** The text before the first stop sequence in it, and which one that is. */
function untilStop(text: string, stop: readonly string[]): { readonly text: string; readonly found?: string } {
  const [first] = stop
    .map((found) => ({ found, at: found === '' ? -1 : text.indexOf(found) }))
    .filter(({ at }) => at >= 0)
    .toSorted((a, b) => a.at - b.at);
  return first ? { text: text.slice(0, first.at), found: first.found } : { text };
}
