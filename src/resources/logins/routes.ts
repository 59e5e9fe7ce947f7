import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { nullable } from '#http/schemas';
import type { Logins } from './logins.ts';

const LoginObject = Type.Object({
  id: Type.Integer(),
  date_time: Type.String({ description: 'RFC 1123' }),
  ip: Type.String(),
  type: Type.Literal('login'),
  status: Type.Enum(['Success', 'Failure']),
  comment: nullable(Type.String()),
});

const [usual, most] = [5, 100];

/** The last sign-ins of whoever asks, in the words of the native interface. */
export function loginRoutes(logins: Pick<Logins, 'list'>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/user/get-user-logins', {
      scope: 'unscoped',
      owner: 'caller',
      summary: 'Your last sign-ins and requests for tokens, newest first.',
      input: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, description: `Maximum number of rows; above ${most}, or absent: ${usual}.` })) }),
      output: Type.Array(LoginObject),
      async answer({ caller, input: { limit = usual } }) {
        const found = await logins.list(caller.userId, limit > most ? usual : limit);
        return found.map(({ id, at, address, isGood, comment }) => ({
          id,
          date_time: at.toUTCString(),
          ip: address,
          type: 'login',
          status: isGood ? 'Success' : 'Failure',
          comment,
        }));
      },
    }),
  ];
}
