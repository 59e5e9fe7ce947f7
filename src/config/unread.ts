import type { ProviderKind } from '#core/provider-kind';
import { isOwn } from './sense/own-address.ts';
import type { Settings } from './schema/index.ts';
import type { Variables } from './variables.ts';

/** A variable that is set and not read, and the variable or the setting of the file to use in its place. */
export interface UnreadVariable {
  readonly name: string;
  readonly instead: string;
}

/**
 * The variables of vendors' SDKs that are set in vain. Left out are those of a vendor to which the settings file has a provider, and those that lead to this
 * server itself: they are for programs that are started in the same terminal.
 * @param inFile the providers of the settings file
 */
export function unreadVariables(
  env: Variables,
  kinds: readonly ProviderKind[],
  settings: Settings,
  inFile: Partial<Settings['providers']>,
): readonly UnreadVariable[] {
  const written = Object.values(inFile);
  return kinds.flatMap(({ dialect, kind, unread = {} }) => {
    const set = Object.entries(unread).filter(([name, instead]) => env[name] && !env[instead]);
    const isMeant = written.some((one) => one?.dialect === dialect && one.kind === kind) || set.some(([name]) => isOwn(env[name]!, settings));
    return isMeant ? [] : set.map(([name, instead]) => ({ name, instead }));
  });
}

/** What to do about it. */
export const unreadSaid = ({ name, instead }: UnreadVariable): string =>
  instead.includes('.') ? `${name} is not read: use ${instead} in the settings file.` : `${name} is not read: set ${instead} instead.`;
