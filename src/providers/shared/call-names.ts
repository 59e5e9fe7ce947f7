import type { ToolCallPart } from '#core/conversation';

/** Names of tool calls, under which their thoughts are stored for a user. */

/** Is an id long and random, as most providers make them? Some count (`functions.look:0`): such a call is identified by its position, too. */
const isOwnId = (id: string): boolean => id.length <= 500 && /[0-9A-Za-z]{16}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/.test(id) && /\d/.test(id);

/** @param position that of the call (`Positions`), computed only where the id is not unique */
export const nameOfCall = (id: string, position: () => string): string => (isOwnId(id) ? `id ${id}` : `at ${position()} ${id.slice(0, 500)}`);

/** Did the client return the call without an id? */
export const isUnnamed = ({ extra }: ToolCallPart): boolean => Object.values(extra ?? {}).some((carried) => carried['.unnamed'] === true);
