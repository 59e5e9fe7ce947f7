import type { Variables } from './variables.ts';

type Substituted = { readonly text: string; readonly problem?: undefined } | { readonly text?: undefined; readonly problem: string };

/** Replaces each `${NAME}` by the value of the environment variable; `$${` is a literal `${`. Inserted values are not expanded again. */
export function substituted(text: string, env: Variables): Substituted {
  const unset: string[] = [];
  let broken = false;
  const result = text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (whole, name: string | undefined, end: string) => {
    if (name === undefined) return '${';
    if (end === '' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) broken = true;
    else if (!env[name]) unset.push(name);
    return env[name] ?? whole;
  });
  if (broken) return { problem: 'has ${ without a variable name and }; expected ${NAME}, or $${ for a literal ${.' };
  if (unset.length === 1) return { problem: `needs the environment variable ${unset[0]}, which is not set.` };
  if (unset.length > 1) return { problem: `needs the environment variables ${unset.join(', ')}, which are not set.` };
  return { text: result };
}
