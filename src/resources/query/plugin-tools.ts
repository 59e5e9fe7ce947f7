import { Fault } from '#core/fault';
import { fold } from '#core/fold';
import { wholeAnswer } from '#core/generate';
import type { Context } from '#core/context';
import type { ToolAnswer, ToolSource } from '#core/mcp-offers';
import type { RunnablePlugin } from '../plugin-run.ts';
import type { QueryDeps } from './deps.ts';
import { askedOfPlugin } from './plugin.ts';

const prefix = 'plugin__';

/** The plugins of the caller, as tools: their arguments are the values of the fields. */
export function pluginTools(deps: QueryDeps): ToolSource {
  return {
    scopes: ['plugins'],
    async *tools({ caller }) {
      for (const plugin of await deps.plugins.list(caller)) yield offered(plugin);
    },
    async call(name, args, context) {
      const plugin = name.startsWith(prefix) ? name.slice(prefix.length) : '';
      return plugin !== '' && (await deps.plugins.isThere(context.caller, plugin)) ? answered(deps, plugin, args, context) : undefined;
    },
  };
}

const offered = ({ name, title, description, fields = {} }: RunnablePlugin) => ({
  name: prefix + name,
  title,
  description,
  inputSchema: fields,
  isReadOnly: false,
});

async function answered(deps: QueryDeps, name: string, values: object, context: Context): Promise<ToolAnswer> {
  const { caller, signal } = context;
  try {
    const { call, generate, whole, before } = await askedOfPlugin(deps, { caller, fields: { message: '-' }, name, values, files: [], signal });
    const completion = await whole(fold(await wholeAnswer(generate, call, context)), context);
    const text = 'message' in completion && typeof completion.message === 'string' ? completion.message : '';
    return { text: text.startsWith(before) ? text.slice(before.length) : text, isError: false };
  } catch (error) {
    throw error instanceof Fault && error.code === 'invalid' ? new Fault('invalid', inArguments(error.message)) : error;
  }
}

/** The arguments of a tool have no field around them. */
const inArguments = (message: string): string => message.replaceAll('plugin_values.', '').replaceAll('plugin_values', 'arguments');
