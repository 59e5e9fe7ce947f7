/** The environment without what is set to nothing: that counts as unset. Has no prototype. */
export type Variables = Readonly<Record<string, string>>;

export function variablesOf(env: Readonly<Record<string, string | undefined>>): Variables {
  const variables: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(env)) if (value) variables[name] = value;
  return variables;
}
