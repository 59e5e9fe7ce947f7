import type { Caller } from '#core/context';
import type { PromptSource } from '#core/mcp-offers';
import { builtInPersonas, type Persona } from './built-in.ts';
import type { PersonaStore } from './store.ts';

/** The personas that a caller may use, as prompts. Where one has the name of another before it, its id stands behind its name. */
export function personaPrompts(personas: Pick<PersonaStore, 'names' | 'usable'>): PromptSource {
  const named = async (caller: Caller) => withNames([...builtInPersonas, ...(await personas.names(caller))]);
  return {
    scopes: ['query'],
    prompts: async (caller) => Array.from(await named(caller), ([name, { description }]) => ({ name, description })),
    async text(caller, name) {
      const found = (await named(caller)).get(name);
      return found && (await personas.usable(caller, found.id)).prompt;
    },
  };
}

function withNames<One extends Pick<Persona, 'id' | 'name'>>(all: readonly One[]): ReadonlyMap<string, One> {
  const named = new Map<string, One>();
  for (const one of all) named.set(named.has(one.name) ? `${one.name} (${one.id})` : one.name, one);
  return named;
}
