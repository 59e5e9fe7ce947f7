import { Type, type Static } from 'typebox';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { idIn, nounRoute, type NounRoute } from '#http/noun-route';
import { closed } from '#http/schemas';
import { ownQuery, ownThingRoutes } from '../own-things.ts';
import { ownerOf, readerOf } from '../owner.ts';
import type { Sharing } from '../sharing.ts';
import { PluginFields, pluginOf, type PluginChecks } from './definition.ts';
import { mostPlugins, type PluginStore } from './store.ts';
import type { OwnPlugin } from './types.ts';

const PluginObject = Type.Object({
  ...PluginFields.properties,
  description: Type.String(),
  category: Type.String(),
  file_mode: Type.Boolean(),
  id: Type.Integer(),
  owner: Type.Integer(),
  right: Type.Enum(['read', 'edit', 'admin', 'owner'], {
    description: 'What the caller may do with it. Who may only use it does not see template, request and script.',
  }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const Exported = closed({ format: Type.Literal('dragoman-plugin'), version: Type.Literal(1), plugin: PluginFields });

export interface PluginRoutesDeps {
  readonly plugins: PluginStore;
  readonly sharing: Sharing;
  readonly checks: (caller: Caller, signal: AbortSignal) => PluginChecks;
}

/** A user's own plugins. */
export function pluginRoutes({ plugins, sharing, checks }: PluginRoutesDeps): readonly NounRoute[] {
  const own = ownThingRoutes({
    noun: 'plugins',
    what: 'plugin',
    scope: 'plugins',
    input: PluginFields,
    output: PluginObject,
    summaries: {
      list: 'Lists your plugins, and those shared with you.',
      make: `Makes a plugin of yours; at most ${mostPlugins}.`,
      one: 'One of your plugins.',
      replace: 'Replaces one of your plugins.',
      remove: 'Deletes one of your plugins.',
    },
    shown,
    rows: plugins,
    make: async (fields, { owner, caller, signal }) => plugins.add(owner, await pluginOf(fields, checks(caller, signal))),
    replace: async (id, fields, { reader, caller, signal }) => plugins.change(reader, id, await pluginOf(fields, checks(caller, signal))),
    remove: (id, { reader }) => plugins.remove(reader, id),
    sharing,
  });
  return [...own, ...fileRoutes({ plugins, checks })];
}

const root = '/server/mine/plugins';
const common = { scope: 'plugins', owner: 'caller', query: ownQuery } as const;

function fileRoutes({ plugins, checks }: Pick<PluginRoutesDeps, 'plugins' | 'checks'>): readonly NounRoute[] {
  return [
    nounRoute('POST', `${root}/import`, {
      ...common,
      summary: 'Makes a plugin of yours from an exported file.',
      input: Exported,
      output: PluginObject,
      makes: true,
      answer: async ({ caller, query: whose, input, signal }) =>
        shown(await plugins.add(ownerOf(caller, whose), await pluginOf(input.plugin, checks(caller, signal)))),
    }),
    nounRoute('GET', `${root}/:id/export`, {
      ...common,
      summary: 'One of your plugins as a file, which names secrets and has none.',
      output: Exported,
      async answer({ caller, params, query: whose }): Promise<Static<typeof Exported>> {
        const plugin = await plugins.one(readerOf(caller, whose), idIn(params, 'id', 'plugin'));
        if (plugin.right === 'read') throw new Fault('forbidden', 'This plugin is shared with you to be used, not to be copied.');
        return { format: 'dragoman-plugin', version: 1, plugin: textOf(plugin) };
      },
    }),
  ];
}

function textOf({
  name,
  title,
  description,
  category,
  definition,
  fields,
  fileMode,
}: OwnPlugin): PluginFields & Required<Pick<PluginFields, 'description' | 'category' | 'file_mode'>> {
  const { kind, ...what } = definition;
  return {
    plugin_name: name,
    title,
    description,
    category,
    kind,
    ...(what as Pick<PluginFields, 'template' | 'request' | 'script'>),
    ...(fields ? { fields } : {}),
    file_mode: fileMode,
  };
}

function shown(plugin: OwnPlugin): Static<typeof PluginObject> {
  const { template, request, script, ...text } = textOf(plugin);
  const { id, owner, right, createdAt, updatedAt } = plugin;
  const what = right === 'read' ? {} : { ...(template ? { template } : {}), ...(request ? { request } : {}), ...(script ? { script } : {}) };
  return { id, ...text, ...what, owner, right, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}
