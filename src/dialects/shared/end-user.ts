import { createHash } from 'node:crypto';
import type { GenerateCall } from '#core/call';
import { isObject } from '#core/json';

/** What a wire accepts as the name of its client's own user. */
interface UserRules {
  /** Characters. */
  readonly longest: number;
  readonly refused?: RegExp;
}

interface SentUser {
  readonly user: string;
  /** What was decided for the client, as `field: reason`. */
  readonly decided?: string;
}

/** The client's own user as a wire accepts the name: a digest stands for one that it refuses, always the same for the same user. */
export function sentUser(user: string, { longest, refused }: UserRules): SentUser {
  if (user.length <= longest && !refused?.test(user)) return { user };
  const reason = user.length > longest ? `the provider accepts ${longest} characters` : 'the provider accepts no names of persons';
  return { user: createHash('sha256').update(user).digest('hex'), decided: `user: ${reason}, so a digest of it is sent.` };
}

/** What wires call the field: another one may have the same value by chance. */
const userFields: ReadonlySet<string> = new Set(['user', 'safety_identifier', 'metadata']);

/** Does the field of another dialect say no more than who the client's user is? Wires with a field of their own for that send it there. */
export const isUserField = (name: string, { endUser, extra }: Pick<GenerateCall, 'endUser' | 'extra'>): boolean =>
  endUser !== undefined &&
  userFields.has(name) &&
  Object.values(extra).some((fields) => {
    const value = fields[name];
    return value === endUser || (isObject(value) && value['user_id'] === endUser && Object.keys(value).length === 1);
  });
