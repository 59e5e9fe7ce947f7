import { Type } from 'typebox';
import { idIn, nounRoute, type NounRoute } from '#http/noun-route';
import { ownerOf, ownerQuery, readerOf } from '../owner.ts';
import { cursorOf, idBefore, pageOf, pageQuery } from '../pagination.ts';
import { builtInPersonas, type Persona } from './built-in.ts';
import { grantRoutes, type Sharing } from '../sharing.ts';
import { mostPersonas, type OwnPersona, type PersonaStore } from './store.ts';

const noControl = '^[^\\p{C}]*$';
/** A text of several lines. The database has no place for the character 0. */
const lines = '^[^\\u0000]*$';
const isText = 'must be a text without the character U+0000';

const PersonaText = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100, pattern: noControl, expected: 'must be a name, without control characters in it' }),
    description: Type.Optional(Type.String({ maxLength: 1000, pattern: lines, expected: isText })),
    prompt: Type.String({
      minLength: 1,
      maxLength: 100_000,
      pattern: lines,
      expected: isText,
      description: 'The system prompt of its answers. Who may use the persona may read the passages whose addresses (/server/mine/passages/{id}) are in it.',
    }),
  },
  { additionalProperties: false },
);

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

const shown = ({ createdAt, updatedAt, ...persona }: OwnPersona) => ({ ...persona, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() });

/** A user's own personas. */
export function personaRoutes(personas: PersonaStore, sharing: Pick<Sharing, 'list' | 'set'>): readonly NounRoute[] {
  const root = '/server/mine/personas';
  const common = { scope: 'query', owner: 'caller', output: PersonaObject } as const;
  const query = Type.Object(ownerQuery, { additionalProperties: false });
  return [
    nounRoute({
      ...common,
      method: 'GET',
      path: root,
      summary: 'Lists your personas, and those shared with you.',
      query: Type.Object(
        {
          ...ownerQuery,
          ...pageQuery,
        },
        { additionalProperties: false },
      ),
      output: Type.Object({ items: Type.Array(PersonaObject), nextCursor: Type.Union([Type.String(), Type.Null()]) }),
      async answer({ caller, query: { limit = 50, cursor, ...whose } }) {
        const found = await personas.list(readerOf(caller, whose), { after: idBefore('personas', cursor), limit: limit + 1 });
        return pageOf(found.map(shown), limit, ({ id }) => cursorOf('personas', [id]));
      },
    }),
    nounRoute({
      ...common,
      method: 'POST',
      path: root,
      summary: `Makes a persona of yours; at most ${mostPersonas}.`,
      query,
      input: PersonaText,
      makes: true,
      answer: async ({ caller, query: whose, input: { description = '', ...text } }) =>
        shown(await personas.add(ownerOf(caller, whose), { description, ...text })),
    }),
    nounRoute({
      ...common,
      method: 'GET',
      path: `${root}/:id`,
      summary: 'One of your personas.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await personas.one(readerOf(caller, whose), idIn(params, 'id', 'persona'))),
    }),
    nounRoute({
      ...common,
      method: 'PUT',
      path: `${root}/:id`,
      summary: 'Replaces one of your personas.',
      query,
      input: PersonaText,
      answer: async ({ caller, params, query: whose, input: { description = '', ...text } }) =>
        shown(await personas.change(readerOf(caller, whose), idIn(params, 'id', 'persona'), { description, ...text }, ownerOf(caller, whose))),
    }),
    nounRoute({
      ...common,
      method: 'DELETE',
      path: `${root}/:id`,
      summary: 'Deletes one of your personas.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await personas.remove(readerOf(caller, whose), idIn(params, 'id', 'persona'))),
    }),
    ...grantRoutes({
      sharing,
      scope: 'query',
      path: `${root}/:id`,
      what: 'persona',
      administered: (caller, params, whose) => personas.administered(readerOf(caller, whose), idIn(params, 'id', 'persona')),
    }),
  ];
}

/** Personas of users in a list for clients that read no pages: of their own, and shared. */
const mostListed = 2000;

/** All personas that a caller may use, in the words of the native interface. */
export function nativePersonaRoutes(personas: Pick<PersonaStore, 'list'>): readonly NounRoute[] {
  const named = ({ id, name, description }: Persona) => ({ id, name, description });
  return [
    nounRoute({
      method: 'POST',
      path: '/server/get-personas',
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
