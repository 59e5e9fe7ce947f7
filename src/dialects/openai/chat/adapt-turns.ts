import { isTranslated, type GenerateCall } from '#core/call';
import type { ForeignPart, MediaPart, Part, TextPart, Turn } from '#core/conversation';
import { isEmpty, own, type Extra } from '#core/json';
import { isDeveloper, type ShapeQuirks } from './message-shape.ts';
import { acceptedId, shortId } from './short-ids.ts';
import { dialect } from './wire.ts';

/** What a model accepts in messages. */
export interface TurnQuirks extends ShapeQuirks {
  /** False: it refuses the role `developer`. */
  readonly developer?: boolean;
  /** It accepts only ids of tool calls that are nine letters and digits. */
  readonly shortIds?: boolean;
  /** It refuses ids of tool calls of more than 40 characters, such as those of vLLM. */
  readonly boundedIds?: boolean;
  /** False: it refuses a user message right after the result of a tool. */
  readonly userAfterTool?: boolean;
  /** It knows the member `refusal` of a message. Absent: what a model refused with is sent as its text. */
  readonly refusals?: true;
  /** It accepts no content but text. */
  readonly textOnly?: boolean;
}

/** The turns of a call as a model with these quirks accepts them. */
export function adaptedTurns(
  call: GenerateCall,
  { developer, refusals, shortIds, boundedIds, textOnly, roleOrder, stringContent }: TurnQuirks,
): readonly Turn[] {
  const translated = isTranslated(call, dialect);
  let turns = joined(translated && stringContent ? call.turns.map(withWholeTexts) : call.turns, translated || roleOrder === 'roles-alternate');
  if (developer === false) turns = turns.map((turn) => (isDeveloper(turn) ? withoutRole(turn) : turn));
  if (!refusals) turns = withParts(turns, refusalAsText);
  if (shortIds) turns = withParts(turns, (part) => withId(part, shortId));
  if (boundedIds && !translated) turns = withParts(turns, withBoundedId);
  if (textOnly && translated) turns = withParts(turns, unsent);
  return translated ? withParts(turns, translatedPart) : turns;
}

const refusalAsText = (part: Part): Part => (part.type === 'refusal' ? { type: 'text', text: part.text } : part);

function withoutRole({ extra, ...turn }: Turn): Turn {
  const { '.role': _, ...carried } = own(extra, dialect);
  return { ...turn, extra: { ...extra, [dialect]: carried } };
}

/** Turns that have nothing to change are the same objects as before. */
const withParts = (turns: readonly Turn[], changed: (part: Part) => Part): readonly Turn[] =>
  turns.map((turn) => {
    const parts = turn.parts.map(changed);
    return parts.some((part, at) => part !== turn.parts[at]) ? { ...turn, parts } : turn;
  });

const withBoundedId = (part: Part): Part => withId(part, acceptedId);

/** Ids within OpenAI's length (https://github.com/vercel/ai/issues/8132), and arguments that are JSON, as Ollama wants them. */
function translatedPart(part: Part): Part {
  const fit = withBoundedId(part);
  return fit.type === 'tool-call' && !fit.custom && fit.json.trim() === '' ? { ...fit, json: '{}' } : fit;
}

/** An image or a file as a part that the wire does not have. */
const unsentMedia = (part: MediaPart): ForeignPart => ({ type: 'foreign', dialect: 'media', value: { type: part.kind } });

function unsent(part: Part): Part {
  if (part.type === 'media') return unsentMedia(part);
  if (part.type !== 'tool-result' || !part.parts.some(({ type }) => type === 'media')) return part;
  return { ...part, parts: part.parts.map((one) => (one.type === 'media' ? unsentMedia(one) : one)) };
}

function withId(part: Part, fit: (id: string) => string): Part {
  if (part.type !== 'tool-call' && part.type !== 'tool-result') return part;
  const id = fit(part.id);
  return id === part.id ? part : { ...part, id };
}

/** The turn with texts of the model that follow each other as one text: they are pieces of one, such as those that citations divide. */
function withWholeTexts(turn: Turn): Turn {
  const { role, parts } = turn;
  if (role !== 'model' || !parts.some((part, at) => isPlainText(part) && isPlainText(parts[at - 1]))) return turn;
  const whole: Part[] = [];
  for (const part of parts) {
    const last = whole.at(-1);
    if (isPlainText(part) && isPlainText(last)) whole[whole.length - 1] = { type: 'text', text: last.text + part.text };
    else whole.push(part);
  }
  return { ...turn, parts: whole };
}

/** Text without members that are sent, such as a cache breakpoint. */
const isPlainText = (part: Part | undefined): part is TextPart => part?.type === 'text' && isEmpty(own(part.extra, dialect));

/**
 * Neighbouring turns of the model as one, with its calls at the end: the results must follow the message with the calls. Those of a client of this wire are one
 * only if it left no other way.
 */
function joined(turns: readonly Turn[], translated: boolean): readonly Turn[] {
  if (!turns.some((turn, at) => isJoined(turns[at - 1], turn, translated))) return turns;
  const all: Turn[] = [];
  for (const turn of turns) {
    const last = all.at(-1);
    if (last && isJoined(last, turn, translated)) all[all.length - 1] = { ...last, ...extraOf(last, turn), parts: [...last.parts, ...turn.parts] };
    else all.push(turn);
  }
  return all;
}

function isJoined(before: Turn | undefined, turn: Turn, translated: boolean): before is Turn {
  if (before?.role !== 'model' || turn.role !== 'model') return false;
  return translated || (before.parts.some(({ type }) => type === 'tool-call') && !hasOwnFields(turn) && !hasOwnFields(before));
}

const hasOwnFields = ({ extra }: Turn) => !isEmpty(own(extra, dialect));

const extraOf = ({ extra: first }: Turn, { extra: second }: Turn): { readonly extra?: Extra } => (first || second ? { extra: { ...first, ...second } } : {});
