import { Type, type Static } from 'typebox';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { idIn, nounRoute, type NounRoute } from '#http/noun-route';
import { ownerOf, ownerQuery, readerOf } from '../owner.ts';
import { cursorOf, idBefore, pageOf, pageQuery } from '../pagination.ts';
import { grantRoutes, type Sharing } from '../sharing.ts';
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

const Exported = Type.Object({ format: Type.Literal('dragoman-plugin'), version: Type.Literal(1), plugin: PluginFields }, { additionalProperties: false });

export interface PluginRoutesDeps {
  readonly plugins: PluginStore;
  readonly sharing: Pick<Sharing, 'list' | 'set'>;
  readonly checks: (caller: Caller, signal: AbortSignal | undefined) => PluginChecks;
}

const root = '/server/mine/plugins';
const common = { scope: 'plugins', owner: 'caller', output: PluginObject } as const;
const query = Type.Object(ownerQuery, { additionalProperties: false });

/** A user's own plugins. */
export function pluginRoutes({ plugins, sharing, checks }: PluginRoutesDeps): readonly NounRoute[] {
  return [
    nounRoute({
      ...common,
      method: 'GET',
      path: root,
      summary: 'Lists your plugins, and those shared with you.',
      query: Type.Object(
        {
          ...ownerQuery,
          ...pageQuery,
        },
        { additionalProperties: false },
      ),
      output: Type.Object({ items: Type.Array(PluginObject), nextCursor: Type.Union([Type.String(), Type.Null()]) }),
      async answer({ caller, query: { limit = 50, cursor, ...whose } }) {
        const found = await plugins.list(readerOf(caller, whose), { after: idBefore('plugins', cursor), limit: limit + 1 });
        return pageOf(found.map(shown), limit, ({ id }) => cursorOf('plugins', [id]));
      },
    }),
    nounRoute({
      ...common,
      method: 'POST',
      path: root,
      summary: `Makes a plugin of yours; at most ${mostPlugins}.`,
      query,
      input: PluginFields,
      makes: true,
      answer: async ({ caller, query: whose, input, signal }) =>
        shown(await plugins.add(ownerOf(caller, whose), await pluginOf(input, checks(caller, signal)))),
    }),
    nounRoute({
      ...common,
      method: 'GET',
      path: `${root}/:id`,
      summary: 'One of your plugins.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await plugins.one(readerOf(caller, whose), idIn(params, 'id', 'plugin'))),
    }),
    nounRoute({
      ...common,
      method: 'PUT',
      path: `${root}/:id`,
      summary: 'Replaces one of your plugins.',
      query,
      input: PluginFields,
      answer: async ({ caller, params, query: whose, input, signal }) =>
        shown(await plugins.change(readerOf(caller, whose), idIn(params, 'id', 'plugin'), await pluginOf(input, checks(caller, signal)))),
    }),
    nounRoute({
      ...common,
      method: 'DELETE',
      path: `${root}/:id`,
      summary: 'Deletes one of your plugins.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await plugins.remove(readerOf(caller, whose), idIn(params, 'id', 'plugin'))),
    }),
    ...fileRoutes({ plugins, checks }),
    ...grantRoutes({
      sharing,
      scope: 'plugins',
      path: `${root}/:id`,
      what: 'plugin',
      administered: (caller, params, whose) => plugins.administered(readerOf(caller, whose), idIn(params, 'id', 'plugin')),
    }),
  ];
}

/** Plugins as files. */
function fileRoutes({ plugins, checks }: Pick<PluginRoutesDeps, 'plugins' | 'checks'>): readonly NounRoute[] {
  return [
    nounRoute({
      ...common,
      method: 'POST',
      path: `${root}/import`,
      summary: 'Makes a plugin of yours from an exported file.',
      query,
      input: Exported,
      makes: true,
      answer: async ({ caller, query: whose, input, signal }) =>
        shown(await plugins.add(ownerOf(caller, whose), await pluginOf(input.plugin, checks(caller, signal)))),
    }),
    nounRoute({
      ...common,
      method: 'GET',
      path: `${root}/:id/export`,
      summary: 'One of your plugins as a file, which names secrets and has none.',
      query,
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
