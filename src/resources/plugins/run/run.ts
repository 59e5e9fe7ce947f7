import { createHash } from 'node:crypto';
import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import type { ConvertDocument } from '#core/document';
import { Fault, invalid } from '#core/fault';
import type { Events } from '#core/event';
import type { Generate } from '#core/generate';
import { inSteps } from '#core/permits';
import type { UploadedFile } from '#http/uploads';
import { asWritten } from '#kit/json/numbers';
import type { AskedPlugin, PluginRun, Plugins } from '../../plugin-run.ts';
import { builtInPlugins, page } from '../built-in.ts';
import type { PluginStore } from '../store.ts';
import { filled, textOfValue } from '../template.ts';
import type { Definition, OwnPlugin, Plugin } from '../types.ts';
import { valuesIn } from '../field-list.ts';
import { propertiesOf, valuesOf, type Values } from '../values.ts';
import { calledOverHttp, type CallDeps } from './http.ts';
import { ranScript, type ScriptDeps } from './script.ts';
import type { KeepsTo } from '../../keeps-to.ts';

export interface RunDeps extends CallDeps, ScriptDeps {
  readonly plugins: Pick<PluginStore, 'named' | 'one' | 'runnable'>;
  readonly keepsTo: KeepsTo;
  /** Checks that a call could be made and paid for. @throws Fault */
  readonly affords: (call: GenerateCall, context: Context) => Promise<void>;
  /** Counts a request that may ask no model. @throws Fault */
  readonly enters: (context: Context) => Promise<void>;
  /** Absent: files are not read. */
  readonly convert: ConvertDocument | undefined;
  /** The text of a page of the web; undefined where it cannot be read. */
  readonly readPage: (url: string, asking: { readonly owner: string; readonly signal: AbortSignal }) => Promise<string | undefined>;
}

export const runningPlugins = (deps: RunDeps): Plugins => ({
  list: async (caller) => [...builtInPlugins, ...(await deps.plugins.runnable(caller))],
  async run(asked) {
    const plugin = asked.id === undefined ? await deps.plugins.named(asked.caller, asked.name) : await withId(asked.caller, asked.id, deps);
    if (plugin && asked.digest !== undefined && asked.digest !== digestOf(plugin))
      throw new Fault('conflict', `The plugin ${plugin.name} has changed since it was looked at: it is not run as it is now.`);
    return plugin && prepared(plugin, asked, deps);
  },
  async callable(caller, id) {
    const plugin = await withId(caller, id, deps);
    const { name, title, description, fields = { type: 'object' }, definition } = plugin;
    const tells = definition.kind !== 'prompt' || readsPage(plugin);
    return { id, name, description: description || title, fields, isReadOnly: changesNothing(definition), tells, digest: digestOf(plugin) };
  },
  isThere: async (caller, name) => (await deps.plugins.named(caller, name)) !== undefined,
});

const withId = (caller: Caller, id: number, { plugins }: RunDeps): Promise<Plugin | OwnPlugin> => {
  const own = builtInPlugins.find((plugin) => plugin.id === id);
  return own ? Promise.resolve(own) : plugins.one(caller, id);
};

/** Its values name a page of the web, whose server learns what the address says. */
const readsPage = (plugin: Plugin | OwnPlugin): boolean => plugin.name === page.plugin && !('owner' in plugin);

const digestOf = ({ definition, fields }: Plugin): string =>
  createHash('sha256')
    .update(JSON.stringify([definition, fields ?? null]))
    .digest('base64url');

/** Is it known that a plugin only reads? */
function changesNothing(definition: Definition): boolean {
  switch (definition.kind) {
    case 'prompt':
      return true;
    case 'http':
      return definition.request.method === 'GET';
    case 'script':
      return (definition.script.hosts ?? []).length === 0;
    default:
      return definition satisfies never;
  }
}

async function prepared(plugin: Plugin | OwnPlugin, { caller, values: given, text, files, signal }: AskedPlugin, deps: RunDeps): Promise<PluginRun> {
  if (files.length > 0 && !plugin.fileMode) throw new Fault('invalid', `file: the plugin ${plugin.name} takes no files.`, { field: 'file' });
  const asking = { owner: String(caller.userId), signal };
  const values = await valuesOf(
    { plugin, given: given ?? (text === undefined ? {} : valuesIn(text, plugin)), hasFile: files.length > 0, ...asking },
    deps.keepsTo,
  );
  const { definition } = plugin;
  if (definition.kind === 'prompt') {
    const { output } = definition;
    const message = (more: Values = {}) => filled(definition.template, { values: { ...withFileNames(plugin, asWritten(values) as Values, files), ...more } });
    const whole = async () => message({ [page.place]: await pageOf(values, asking, deps) });
    return { type: 'question', message: message(), ...(readsPage(plugin) ? { whole } : {}), ...(output ? { output: output(values) } : {}) };
  }
  return { type: 'own', generate: owning((context, call) => answerOf(plugin as OwnPlugin, { values, files, model: call.model, context }, deps), deps) };
}

/** The place of a file in a template has its name: the text itself is material of the question. */
const withFileNames = ({ fields }: Plugin, values: Values, files: readonly UploadedFile[]): Values =>
  files.length === 0 || (fields && Object.hasOwn(propertiesOf(fields), 'file'))
    ? values
    : { ...values, file: files.map(({ filename }) => filename.slice(0, 200)).join(', ') };

async function pageOf(values: Values, asking: { readonly owner: string; readonly signal: AbortSignal }, { readPage }: RunDeps): Promise<string> {
  const found = await readPage(textOfValue(values[page.field]), asking);
  if (!found) throw invalid('plugin_values.url', 'cannot be read: it must be the public address of a page with text');
  return found;
}

/** An answer that the plugin makes itself, of an account that could pay for one of a model. */
const owning = (answer: (context: Context, call: GenerateCall) => Promise<string>, { affords, enters }: RunDeps): Generate =>
  async function* (call, context) {
    await affords(call, context);
    await enters(context);
    yield* inSteps(context.permits, made());
    async function* made(): AsyncGenerator<Events> {
      const text = await answer(context, call);
      yield [
        { type: 'started', model: '', ignored: [] },
        { type: 'text', candidate: 0, text },
        { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
      ];
    }
  };

interface PluginCall {
  readonly values: Values;
  readonly files: readonly UploadedFile[];
  readonly model: string;
  readonly context: Context;
}

async function answerOf({ definition, owner }: OwnPlugin, { values, files, model, context }: PluginCall, deps: RunDeps) {
  const file = await fileOf(files, context, deps);
  if (definition.kind === 'script') return ranScript({ script: definition.script, values, file, model, isOwn: owner === context.caller.userId, context }, deps);
  if (definition.kind !== 'http') throw new TypeError('A prompt is answered by a model.');
  const all = file && !Object.hasOwn(values, 'file') ? { ...values, file: file.text } : values;
  return calledOverHttp({ request: definition.request, values: all, ownerId: owner, caller: context.caller, signal: context.signal }, deps);
}

/** Characters of a file that a request or a script is given. */
const mostOfFile = 1_000_000;

async function fileOf(
  files: readonly UploadedFile[],
  { caller, signal }: Context,
  { convert }: RunDeps,
): Promise<{ readonly name: string; readonly text: string } | null> {
  const [file, ...others] = files;
  if (!file) return null;
  if (others.length > 0) throw invalid('file', 'must be given once: this plugin takes one file');
  if (!convert) throw new Fault('unsupported', 'file: files are not read by this server.', { field: 'file' });
  const { text } = await convert(file.content, { filename: file.filename, owner: String(caller.userId), signal });
  if (text.length > mostOfFile) throw new Fault('too-large', `file: its text is longer than ${mostOfFile} characters.`, { field: 'file' });
  return { name: file.filename.slice(0, 200), text };
}
