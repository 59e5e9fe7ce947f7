import type { GenerateCall } from './call.ts';
import type { Part, TextPart, Turn } from './conversation.ts';

/**
 * The turns of a call with each answer of the model in one turn, and its text in one part where nothing else stands between. Chats of Google's SDKs return a
 * streamed answer as they received it, one content for each chunk, which on another wire would be as many messages. The same turns where nothing is in pieces.
 */
export function withWholeAnswers({ turns, inPieces }: Pick<GenerateCall, 'turns' | 'inPieces'>): readonly Turn[] {
  if (!inPieces) return turns;
  return joinedTurns(turns).map((turn) => (turn.role === 'model' ? { ...turn, parts: joinedTexts(turn.parts) } : turn));
}

/** Neighbouring turns of the model as one. Those with members of their own stay apart. */
export function joinedTurns(turns: readonly Turn[]): readonly Turn[] {
  const runs: { turn: Turn; parts: Part[] }[] = [];
  for (const turn of turns) {
    const last = runs.at(-1);
    if (last && goesOn(last.turn, turn)) last.parts.push(...turn.parts);
    else runs.push({ turn, parts: [...turn.parts] });
  }
  return runs.map(({ turn, parts }) => ({ ...turn, parts }));
}

/** Is the second turn a further piece of the answer of the first? */
export const goesOn = (before: Turn | undefined, turn: Turn): boolean => before?.role === 'model' && turn.role === 'model' && !before.extra && !turn.extra;

function joinedTexts(parts: readonly Part[]): readonly Part[] {
  const whole: Part[] = [];
  let run: TextPart[] = [];
  const close = () => {
    if (run.length > 0) whole.push(run.length === 1 ? run[0]! : oneText(run));
    run = [];
  };
  for (const part of parts) {
    if (part.type === 'text') run.push(part);
    else {
      close();
      whole.push(part);
    }
  }
  close();
  const said = whole.filter((part) => part.type !== 'text' || part.text !== '' || part.extra);
  return said.length > 0 ? said : whole;
}

/** The last piece with members of its own has the signature of the whole text. */
function oneText(pieces: readonly TextPart[]): TextPart {
  const extra = pieces.findLast((piece) => piece.extra)?.extra;
  return { type: 'text', text: pieces.map(({ text }) => text).join(''), ...(extra ? { extra } : {}) };
}
