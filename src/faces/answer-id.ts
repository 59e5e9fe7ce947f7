import type { Exchange } from '#http/exchange';
import { copied } from '#kit/text/copied';

/** The id of an answer: that of its request under another prefix. */
export const answerId = (prefix: string, { id }: Pick<Exchange, 'id'>): string => copied(`${prefix}${id.slice(4)}`);
