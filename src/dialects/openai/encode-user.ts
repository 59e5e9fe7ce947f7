import type { GenerateCall } from '#core/call';
import type { JsonObject } from '#core/json';
import { sentUser } from '../shared/end-user.ts';

/** https://github.com/maximhq/bifrost/pull/1000 */
const longestUser = 64;

/** The field `user` of OpenAI's wires, for clients that have another name for it. @param carried the fields that the client of one of these wires sent */
export const encodedUser = ({ endUser }: GenerateCall, carried: JsonObject): ReturnType<typeof sentUser> | undefined =>
  endUser === undefined || carried['user'] !== undefined || carried['safety_identifier'] !== undefined
    ? undefined
    : sentUser(endUser, { longest: longestUser });
