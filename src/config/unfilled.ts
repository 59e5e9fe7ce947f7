import type { Settings } from './schema/index.ts';

/** The name of a variable where its value belongs, as shells, LiteLLM and JavaScript write it. */
const variable = /^(?:\$|os\.environ\/|process\.env\.)([A-Z][A-Z0-9_]*)$/;

/** What to do about API keys of providers that are the name of a variable, and would be sent as they stand. */
export function unfilledKeys({ providers }: Settings): readonly string[] {
  return Object.entries(providers).flatMap(([provider, { apiKeys = [] }]) =>
    apiKeys.flatMap((key, at) => {
      const name = variable.exec(key)?.[1];
      return name === undefined
        ? []
        : [`providers.${provider}.apiKeys[${at}] is sent as it stands: write "\${${name}}" for the value of the variable ${name}.`];
    }),
  );
}
