import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import type { Counters } from './counters.ts';

const AppName = Type.Object({ app_name: Type.Optional(Type.String({ maxLength: 200, description: 'An application; absent: all.' })) });

/** The name that clients of the reference service send where they mean all applications. */
const allApps = 'asksage';

/** Counters of the month in the words of the native interface. */
export function counterRoutes(counters: Counters): readonly NounRoute[] {
  const common = { scope: 'query', owner: 'caller', output: Type.Integer(), inputMayBeLeftOut: true } as const;
  const alsoAt = (name: string) => [{ method: 'POST', path: `/user/${name}` } as const, { method: 'GET', path: `/user/${name}` } as const];
  return [
    nounRoute('POST', '/server/count-monthly-tokens', {
      ...common,
      also: alsoAt('count-monthly-tokens'),
      summary: 'Plan tokens of inference that you have used this month, with one application or with all.',
      input: AppName,
      answer: ({ caller, input: { app_name: app = '' } }) => counters.inference(caller.userId, app === '' || app === allApps ? undefined : app),
    }),
    nounRoute('POST', '/server/count-monthly-teach-tokens', {
      ...common,
      also: alsoAt('count-monthly-teach-tokens'),
      summary: 'Plan tokens of training that you have used this month.',
      input: Type.Object({}),
      answer: ({ caller }) => counters.training(caller.userId),
    }),
    nounRoute('POST', '/server/count-monthly-tokens-left-with-org', {
      ...common,
      also: alsoAt('count-monthly-tokens-left-with-org'),
      summary: 'Plan tokens of inference that you and your teams have left this month.',
      input: Type.Object({}),
      answer: ({ caller }) => counters.leftWithOrganisation(caller),
    }),
  ];
}
