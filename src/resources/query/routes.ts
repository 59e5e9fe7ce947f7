import { Type, type Static } from 'typebox';
import type { Caller } from '#core/context';
import { Fault, missing } from '#core/fault';
import { hasScope } from '#core/scopes';
import { nounRoute, type NounRoute } from '#http/noun-route';
import type { UploadedFile } from '#http/uploads';
import { optionalOrNull } from '#http/schemas';
import type { QueryDeps } from './deps.ts';
import { Completion, completionMembers, FollowUpFields, QueryFields } from './fields.ts';
import { followUp } from './follow-up.ts';
import { datasetsOf } from './looked-up.ts';
import { askedOfPlugin, maybeTagged, taggedIn, type AskedOfPlugin } from './plugin.ts';

const PluginFields = Type.Object({
  ...QueryFields.properties,
  message: Type.Optional(Type.Union(QueryFields.properties.message.anyOf, { description: 'May be left out where `plugin_values` say everything.' })),
  plugin_name: optionalOrNull(Type.String({ maxLength: 200 })),
  plugin: optionalOrNull(Type.String({ maxLength: 200 }), { description: 'The same.' }),
  plugin_values: optionalOrNull(Type.Object({})),
});

const { model, live, streaming, usage, temperature, app_name, dataset, limit_references, reasoning_effort } = QueryFields.properties;
const asQuestion = { model, live, streaming, usage, temperature, app_name, dataset, limit_references, reasoning_effort };
const name = Type.String({ minLength: 1, maxLength: 200 });

const ExecuteFields = Type.Object({
  plugin_name: name,
  plugin_values: Type.Object({}, { description: 'The values of its fields, as `get-plugins` lists them.' }),
  ...asQuestion,
});
const WithFileFields = Type.Object({ plugin_name: name, plugin_values: optionalOrNull(Type.Object({})), ...asQuestion });

const streams = ['text/plain', 'text/event-stream'];

/** Questions to models, in the words of the native interface. */
export function queryRoutes(deps: QueryDeps): readonly NounRoute[] {
  const common = { scope: 'query', owner: 'caller', spends: true, numbersAsWritten: true, input: QueryFields, output: Completion, sends: streams } as const;
  return [
    nounRoute('POST', '/server/query', {
      ...common,
      summary: 'Answers a question: by a model, as a persona, from datasets, files and the web.',
      answer: ({ caller, input, files, signal }) => maybeTagged(deps, { caller, fields: input, files, signal }),
    }),
    nounRoute('POST', '/server/query_stream', {
      ...common,
      summary: 'The same as a stream: objects with `@|@sep@|@` between them, or server-sent events where they are accepted. The last one is the whole answer.',
      answer: ({ caller, input, files, signal }) => maybeTagged(deps, { caller, fields: input, files, signal, streams: true }),
    }),
    nounRoute('POST', '/server/query_with_file', {
      ...common,
      summary: 'Answers a question about one or more files, which come as `file` of a form.',
      answer({ caller, input, files, signal }) {
        requireFile(files);
        return maybeTagged(deps, { caller, fields: input, files, signal });
      },
    }),
    nounRoute('POST', '/server/query-plugin', {
      ...common,
      scope: 'plugins',
      summary: 'Answers a question with a plugin, which `plugin_name` names, or `[[name]]` at the beginning of `message`.',
      input: PluginFields,
      answer({ caller, input, files, signal }) {
        const { plugin_name: given, plugin, plugin_values: values, message, ...rest } = input;
        const tagged = message === undefined ? undefined : taggedIn(message);
        const name = given ?? plugin ?? tagged?.name;
        if (!name) throw missing('plugin_name');
        const fields = { ...rest, message: message ?? noMessage };
        refuseLookingUp(caller, fields);
        if (message === undefined) return askedOfPlugin(deps, { caller, fields, name, values: values ?? {}, files, signal });
        const text = tagged?.name === name ? tagged.text : lastOf(message);
        return askedOfPlugin(deps, { caller, fields, name, values: values ?? undefined, text, files, signal });
      },
    }),
    nounRoute('POST', '/server/execute-plugin', {
      ...common,
      scope: 'plugins',
      summary: 'Runs a plugin with values for its fields. The answer is one JSON object, or a stream where `streaming` asks for it.',
      input: ExecuteFields,
      answer: ({ caller, input, signal }) => executed(deps, { caller, input, files: [], signal }),
    }),
    nounRoute('POST', '/server/execute-plugin-with-file', {
      ...common,
      scope: 'plugins',
      summary: 'Runs a plugin on a file, which comes as `file` of a form.',
      input: WithFileFields,
      answer({ caller, input, files, signal }) {
        requireFile(files);
        return executed(deps, { caller, input, files, signal });
      },
    }),
    nounRoute('POST', '/server/follow-up-questions', {
      ...common,
      also: [{ method: 'POST', path: '/server/follow_up_questions' }],
      summary: 'Up to three questions that may follow a conversation.',
      input: FollowUpFields,
      output: Type.Object({ ...completionMembers, questions: Type.Array(Type.String()) }),
      answer: ({ input, caller }) => followUp(deps, input, caller),
    }),
  ];
}

/** A key that runs plugins alone reads no datasets through them. @throws Fault `forbidden` */
function refuseLookingUp(caller: Caller, { dataset }: Pick<QueryFields, 'dataset'>): void {
  if (hasScope(caller, ['query', 'datasets'])) return;
  const asked = datasetsOf(dataset);
  if (asked === 'all' || asked.length > 0) throw new Fault('forbidden', 'dataset needs the scope query or datasets.', { field: 'dataset', reason: 'scope' });
}

function requireFile(files: readonly UploadedFile[]): void {
  if (files.length === 0) throw missing('file', 'is required: send a form with one or more files');
}

/** What stands for the message of a question that a plugin makes. */
const noMessage = '-';

const lastOf = (message: QueryFields['message']): string => (typeof message === 'string' ? message : (message.at(-1)?.message ?? ''));

function executed(
  deps: QueryDeps,
  { input, ...asked }: Pick<AskedOfPlugin, 'caller' | 'files' | 'signal'> & { readonly input: Static<typeof WithFileFields> },
) {
  const { plugin_name: plugin, plugin_values: values, ...fields } = input;
  refuseLookingUp(asked.caller, fields);
  return askedOfPlugin(deps, { ...asked, fields: { ...fields, message: noMessage }, name: plugin, values: values ?? {} });
}
