import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { closed, nullable, shownAs } from '#http/schemas';
import type { Audit } from '#store/auditing';
import type { Store } from '#store/open';
import { instantIn } from '../instant-field.ts';
import { badCursor, cursorOf, instantAt, pageOf, pageQuery, pageSchema, placeOf } from '../pagination.ts';
import type { VoteStore } from './store.ts';

/** Votes against answers, in the words of the native interface. */
export function nativeVoteRoutes(votes: Pick<VoteStore, 'voteDown'>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/vote-down', {
      scope: 'query',
      owner: 'caller',
      summary: 'Marks an answer of yours as unhelpful or wrong: administrators see it, with what it was made from.',
      input: Type.Object({
        uuid: Type.String({
          pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
          maxLength: 36,
          expected: 'must be the uuid of an answer',
        }),
      }),
      answer: ({ caller, input: { uuid } }) => votes.voteDown(caller.userId, uuid.toLowerCase()),
    }),
  ];
}

const time = (description: string) => Type.Optional(Type.String({ maxLength: 40, description: `ISO 8601. ${description}` }));

const VoteObject = Type.Object({
  id: Type.Integer(),
  at: Type.String(),
  userId: Type.Integer(),
  uuid: Type.String(),
  requestId: Type.String(),
  model: Type.String(),
  message: nullable(Type.String(), { description: 'What was asked; null where it is not kept, and for auditors.' }),
  answer: nullable(Type.String()),
  passages: Type.Array(
    Type.Object({ id: Type.Integer(), dataset: Type.String(), filename: Type.String(), page: nullable(Type.Integer()), text: Type.String() }),
  ),
});

export function voteRoutes(votes: Pick<VoteStore, 'list'>, store: Store, audit: Audit): readonly NounRoute[] {
  return [
    nounRoute('GET', '/server/admin/votes', {
      scope: 'admin',
      owner: 'admin',
      summary: 'Answers that users voted against, with what was asked and what the answer was made from; newest first. That they were looked at is audited.',
      query: closed({
        ...pageQuery,
        userId: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Only of this user.' })),
        from: time('Not before.'),
        to: time('Before.'),
      }),
      output: pageSchema(VoteObject),
      async answer({ caller, by, query: { limit = 50, cursor, userId, from, to } }) {
        const wanted = { userId, from: timeIn('from', from), to: timeIn('to', to), before: placeBefore(cursor), limit: limit + 1 };
        const found = await votes.list(wanted);
        const page = pageOf(found, limit, ({ at, id }) => cursorOf('votes', [at.toISOString(), id]));
        if (caller.role !== 'admin') return { ...page, items: page.items.map(shown).map(withoutTexts) };
        if (page.items.some(({ message }) => message !== null)) await audit(store, { by, action: 'votes.read', target: { kind: 'votes', id: userId ?? null } });
        return { ...page, items: page.items.map(shown) };
      },
    }),
  ];
}

const shown = shownAs(VoteObject);

/** Auditors see that there was a vote, and no prompts. */
const withoutTexts = (vote: ReturnType<typeof shown>) => ({ ...vote, message: null, answer: null, passages: [] });

const timeIn = (field: string, text: string | undefined) => (text === undefined ? undefined : new Date(instantIn(field, text)));

function placeBefore(cursor: string | undefined): { readonly at: Date; readonly id: number } | undefined {
  if (cursor === undefined) return undefined;
  const [at, id, ...rest] = placeOf('votes', cursor);
  if (typeof id !== 'number' || rest.length > 0) throw badCursor();
  return { at: instantAt(at), id };
}
