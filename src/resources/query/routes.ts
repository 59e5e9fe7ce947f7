import { Type } from 'typebox';
import { Fault } from '#core/fault';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import type { QueryDeps } from './deps.ts';
import { Completion, completionMembers, FollowUpFields, QueryFields } from './fields.ts';
import { followUp } from './follow-up.ts';
import { query } from './query.ts';

const PluginFields = Type.Object({
  ...QueryFields.properties,
  plugin_name: Type.Optional(Type.Union([Type.String({ maxLength: 200 }), Type.Null()])),
  plugin: Type.Optional(Type.Union([Type.String({ maxLength: 200 }), Type.Null()], { description: 'The same.' })),
  plugin_values: Type.Optional(Type.Union([Type.Object({}), Type.Null()])),
});

/** Questions to models, in the words of the native interface. */
export function queryRoutes(deps: QueryDeps): readonly NounRoute[] {
  const plain = { method: 'POST', scope: 'query', owner: 'caller', input: QueryFields, output: Completion } as const;
  const common = { ...plain, spends: true } as const;
  return [
    nounRoute({
      ...common,
      path: '/server/query',
      summary: 'Answers a question: by a model, as a persona, from datasets, files and the web.',
      answer: ({ caller, input, files }) => query(deps, { caller, fields: input, files }),
    }),
    nounRoute({
      ...common,
      path: '/server/query_stream',
      summary: 'The same as a stream: objects with `@|@sep@|@` between them, or server-sent events where they are accepted. The last one is the whole answer.',
      answer: ({ caller, input, files }) => query(deps, { caller, fields: input, files, streams: true }),
    }),
    nounRoute({
      ...common,
      path: '/server/query_with_file',
      summary: 'Answers a question about one or more files, which come as `file` of a form.',
      answer({ caller, input, files }) {
        if (files.length === 0) throw new Fault('invalid', 'file is required: send a form with one or more files.', { field: 'file', reason: 'missing' });
        return query(deps, { caller, fields: input, files });
      },
    }),
    nounRoute({
      ...plain,
      scope: 'plugins',
      path: '/server/query-plugin',
      summary: 'Answers a question with a plugin, which `plugin_name` names, or `[[name]]` at the beginning of `message`.',
      input: PluginFields,
      answer({ input: { message, plugin_name: name, plugin } }) {
        const first = typeof message === 'string' ? message : (message.at(-1)?.message ?? '');
        const tag = /^\s*\[\[([^[\]]{1,200})\]\]/.exec(first.slice(0, 300))?.[1];
        if (!(name ?? plugin ?? tag)) throw new Fault('invalid', 'plugin_name is required.', { field: 'plugin_name', reason: 'missing' });
        throw unknownThing('plugin');
      },
    }),
    nounRoute({
      ...common,
      path: '/server/follow-up-questions',
      also: [{ method: 'POST', path: '/server/follow_up_questions' }],
      summary: 'Up to three questions that may follow a conversation.',
      input: FollowUpFields,
      output: Type.Object({ ...completionMembers, questions: Type.Array(Type.String()) }),
      answer: ({ input }) => followUp(deps, input),
    }),
  ];
}
