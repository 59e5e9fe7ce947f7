import { Type, type Static } from 'typebox';
import { pageById, pageQuery, pageSchema } from '../pagination.ts';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { closed, nullable } from '#http/schemas';
import type { Store } from '#store/open';
import { auditTrail, type AuditRow } from './store.ts';

const word = (description: string) => Type.Optional(Type.String({ maxLength: 200, description }));

const AuditItem = Type.Object({
  id: Type.Integer(),
  at: Type.String(),
  actor: Type.Object(
    { type: Type.Enum(['user', 'local']), userId: nullable(Type.Integer()), keyId: nullable(Type.Integer()) },
    { description: 'local: whoever works on the machine itself, by the command line.' },
  ),
  action: Type.String({ description: 'The kind of thing and what was done: user.change.' }),
  target: Type.Object({ kind: Type.String(), id: nullable(Type.String()) }),
  changed: Type.Record(Type.String(), Type.Object({ from: Type.Optional(Type.Unknown()), to: Type.Optional(Type.Unknown()) }), {
    description: 'By member: what it was, what it is. Of a list the items that were removed and added. Never a key or password.',
  }),
  requestId: nullable(Type.String()),
  address: nullable(Type.String({ description: 'Where the request came from: the other end of its connection.' })),
});

const AuditQuery = closed({
  ...pageQuery,
  userId: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Only by this user; 0: by who works on the machine.' })),
  action: word('Only this action.'),
  targetKind: word('Only what was done to this kind of thing: user, key, team, plan, regions, holder.'),
  targetId: word('Only what was done to the thing with this id.'),
});

export function auditRoutes(store: Store): readonly NounRoute[] {
  return [
    nounRoute('GET', '/server/admin/audit', {
      scope: 'admin',
      owner: 'admin',
      summary: 'The audit trail: every change that administrators and the command line made; newest first.',
      query: AuditQuery,
      output: pageSchema(AuditItem),
      answer: ({ query }) => pageById('audit', query, (before, limit) => auditTrail(store, { ...query, before, limit }), shown),
    }),
  ];
}

function shown({ at, userId, keyId, targetKind, targetId, ...row }: AuditRow): Static<typeof AuditItem> {
  return {
    ...row,
    at: at.toISOString(),
    actor: { type: userId === null ? 'local' : 'user', userId, keyId },
    target: { kind: targetKind, id: targetId },
  };
}
