import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { closed, shownAs } from '#http/schemas';
import { lineField, multiline } from '../text-fields.ts';
import { ownThingRoutes } from '../own-things.ts';
import { builtInPersonas, type Persona } from './built-in.ts';
import type { Sharing } from '../sharing.ts';
import { mostPersonas, type PersonaStore } from './store.ts';

const PersonaText = closed({
  name: lineField(100),
  description: Type.Optional(Type.String({ maxLength: 1000, ...multiline })),
  prompt: Type.String({
    minLength: 1,
    maxLength: 100_000,
    ...multiline,
    description: 'The system prompt of its answers. Who may use the persona may read the passages whose addresses (/server/mine/passages/{id}) are in it.',
  }),
});

const PersonaObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  description: Type.String(),
  prompt: Type.String(),
  owner: Type.Integer(),
  right: Type.Enum(['read', 'edit', 'admin', 'owner'], { description: 'What the caller may do with it.' }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const shown = shownAs(PersonaObject);

/** A user's own personas. */
export function personaRoutes(personas: PersonaStore, sharing: Sharing): readonly NounRoute[] {
  return ownThingRoutes({
    noun: 'personas',
    what: 'persona',
    scope: 'query',
    input: PersonaText,
    output: PersonaObject,
    summaries: {
      list: 'Lists your personas, and those shared with you.',
      make: `Makes a persona of yours; at most ${mostPersonas}.`,
      one: 'One of your personas.',
      replace: 'Replaces one of your personas.',
      remove: 'Deletes one of your personas.',
    },
    shown,
    rows: personas,
    make: ({ description = '', ...text }, { owner }) => personas.add(owner, { description, ...text }),
    replace: (id, { description = '', ...text }, { reader, owner }) => personas.change(reader, id, { description, ...text }, owner),
    remove: (id, { reader }) => personas.remove(reader, id),
    sharing,
  });
}

/** Personas of users in a list for clients that read no pages: of their own, and shared. */
const mostListed = 2000;

/** All personas that a caller may use, in the words of the native interface. */
export function nativePersonaRoutes(personas: Pick<PersonaStore, 'list'>): readonly NounRoute[] {
  const named = ({ id, name, description }: Persona) => ({ id, name, description });
  return [
    nounRoute('POST', '/server/get-personas', {
      scope: 'query',
      owner: 'caller',
      summary: 'The personas that may answer: the built-in ones, your own, and those shared with you.',
      output: Type.Array(
        Type.Object({
          id: Type.Integer(),
          name: Type.String(),
          description: Type.String(),
          prompt: Type.Optional(Type.String({ description: 'Of those that you may change.' })),
        }),
      ),
      async answer({ caller }) {
        const own = await personas.list(caller, { after: 0, limit: mostListed });
        return [
          ...builtInPersonas.map(named),
          ...own.map((persona) => (persona.right === 'read' ? named(persona) : { ...named(persona), prompt: persona.prompt })),
        ];
      },
    }),
  ];
}
