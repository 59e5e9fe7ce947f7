import { bare } from './bare.ts';

/** The environment without empty variables, which count as unset. Has no prototype. */
export type Variables = Readonly<Record<string, string>>;

export function variablesOf(env: Readonly<Record<string, string | undefined>>): Variables {
  return bare(Object.entries(env).flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : [])));
}
