import { Type } from 'typebox';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import type { KeptLesson, LessonStore } from './store.ts';

const LessonObject = Type.Object({
  id: Type.Integer(),
  provider: Type.String(),
  model: Type.String({ description: "The provider's name for the model." }),
  wire: Type.String({ description: 'The interface on which it was asked.' }),
  fields: Type.Array(Type.String(), { description: 'The fields that the provider refused, as it calls them.' }),
  learned: Type.Record(Type.String(), Type.Unknown(), {
    description: 'How requests to the model changed: fields that are left out, values that it does not accept.',
  }),
  until: Type.String({ description: 'When it is forgotten, in ISO 8601.' }),
});

const root = '/server/admin/lessons';
const common = { scope: 'admin', owner: 'admin' } as const;
const shown = ({ until, ...lesson }: KeptLesson) => ({ ...lesson, until: new Date(until).toISOString() });

/** What providers taught by refusing requests, for administrators: they list it, and may have it forgotten. */
export function lessonRoutes(lessons: LessonStore): readonly NounRoute[] {
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists what was learned from refusals of providers, the newest first. It holds for an hour.',
      output: Type.Object({ items: Type.Array(LessonObject) }),
      answer: () => ({ items: lessons.list().map(shown) }),
    }),
    nounRoute('DELETE', root, {
      ...common,
      summary: 'Forgets all that was learned from refusals of providers.',
      output: Type.Object({ forgotten: Type.Integer() }),
      answer: async ({ by }) => ({ forgotten: await lessons.forget('all', by) }),
    }),
    nounRoute('DELETE', `${root}/:id`, {
      ...common,
      summary: 'Forgets one lesson.',
      output: Type.Object({ forgotten: Type.Integer() }),
      async answer({ by, params }) {
        const forgotten = await lessons.forget(idIn(params, 'id', 'lesson'), by);
        if (forgotten === 0) throw unknownThing('lesson');
        return { forgotten };
      },
    }),
  ];
}
