import { openaiChat } from '../upstream/wires/openai-chat.ts';
import type { Wire } from '../upstream/wire.ts';

/** The chat wire of those that are not OpenAI: their messages have no `refusal`. */
export const compatibleChat: Wire = {
  ...openaiChat,
  whole: (asked, said) => JSON.parse(JSON.stringify(openaiChat.whole(asked, said)).replaceAll(',"refusal":null', '')) as object,
  frames: (asked, said) => openaiChat.frames(asked, said).map((frame) => frame.replace(',"refusal":null', '')),
};
