import { Type, type Static } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { nullable } from '#http/schemas';
import { builtInPlugins } from './built-in.ts';
import { Field, fieldsOf, lineOf } from './field-list.ts';
import type { PluginStore } from './store.ts';
import type { Plugin } from './types.ts';

const Item = Type.Object({
  id: Type.Integer(),
  plugin_name: Type.String(),
  title: Type.String(),
  description: Type.String(),
  category: Type.String(),
  file_mode: Type.Boolean(),
  paid_only: Type.Boolean(),
  regex: Type.Null(),
  prompt_template: Type.String({ description: 'How a message calls it: `[[plugin_name]]`, and a line for each field.' }),
  fields: nullable(Type.Array(Field)),
});

/** Plugins of users in a list for clients that read no pages: of their own, and shared. */
const mostListed = 2000;

/** All plugins that a caller may use, in the words of the native interface. */
export function nativePluginRoutes(plugins: Pick<PluginStore, 'list'>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/get-plugins', {
      scope: 'plugins',
      owner: 'caller',
      summary: 'The plugins that may be run: the built-in ones, your own, and those shared with you.',
      output: Type.Array(Item),
      answer: async ({ caller }) => [...builtInPlugins, ...(await plugins.list(caller, { after: 0, limit: mostListed }))].map(shown),
    }),
  ];
}

function shown({ id, name, title, description, category, fileMode, fields }: Plugin): Static<typeof Item> {
  const shownFields = fields ? fieldsOf(fields, fileMode) : null;
  const lines = (shownFields ?? []).filter(({ type }) => type !== 'file').map((field) => `${lineOf(field)}{${field.name}}`);
  return {
    id,
    plugin_name: name,
    title,
    description,
    category,
    file_mode: fileMode,
    paid_only: false,
    regex: null,
    prompt_template: [`[[${name}]]`, ...lines].join('\n'),
    fields: shownFields,
  };
}
