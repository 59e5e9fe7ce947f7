import type { ThoughtPart } from '#core/conversation';

/**
 * Is anything lost with a thought that is not sent? One without text may have what its provider signed, or a token in its place.
 * @param thought as a client returned it: its notes have a leading dot, except for the chat wire's `field`
 */
export const isLoss = ({ text, extra }: ThoughtPart): boolean =>
  text !== '' || Object.values(extra ?? {}).some((members) => Object.entries(members).some(([name, value]) => isSaid(name) && value !== '' && value !== null));

const isSaid = (name: string): boolean => !name.startsWith('.') && name !== 'field';
