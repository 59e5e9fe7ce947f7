import { textTurn, type Turn } from '#core/conversation';

/** The turn of a system that says these texts, without the empty ones; none where all are empty. */
export function systemTurn(...texts: readonly string[]): readonly Turn[] {
  const text = texts.filter((one) => one.trim() !== '').join('\n\n');
  return text === '' ? [] : [textTurn('system', text)];
}
