import type { AnswerReader } from '#core/prompt-log';
import type { Events } from '#core/event';
import type { ProviderSide } from '#dialects/dialect';
import { messages } from '#dialects/anthropic/index';
import { chat } from '#dialects/openai/chat/index';
import { splitter } from '#kit/upstream/sse';

type Reading = Pick<ProviderSide<never>, 'name' | 'decoder' | 'decodeResult'>;

/** The dialects in which answers are forwarded as they came. */
const forwarded: readonly Reading[] = [chat, messages];

/** Most bytes of one frame that is read. */
const maxLine = 65_536;

/** Reads the text of an answer that was forwarded as it came. What cannot be read is left out. */
export function answerReader(dialect: string, stream: boolean): AnswerReader {
  const reading = forwarded.find(({ name }) => name === dialect);
  if (!reading) throw new TypeError(`Answers of the dialect ${dialect} are not forwarded.`);
  if (!stream) return readable((bytes) => textIn(reading.decodeResult(JSON.parse(Buffer.from(bytes).toString('utf8')), '')));
  const frames = splitter({ maxLine });
  const decoder = reading.decoder('');
  return readable((bytes) => frames.push(bytes).reduce((text, line) => text + textIn(decoder.decode(line)), ''));
}

/** A reader that reads nothing more after the first thing that it cannot read. */
function readable(read: AnswerReader['read']): AnswerReader {
  let isBroken = false;
  return {
    read(bytes) {
      if (isBroken) return '';
      try {
        return read(bytes);
      } catch {
        isBroken = true;
        return '';
      }
    },
  };
}

function textIn(events: Events): string {
  let text = '';
  for (const event of events) if ((event.type === 'text' || event.type === 'refusal') && event.candidate === 0) text += event.text;
  return text;
}
