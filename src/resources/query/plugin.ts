import { randomUUID } from 'node:crypto';
import { Fault } from '#core/fault';
import { Conversation, unknownThing } from '#http/noun-route';
import type { AskedPlugin, PluginRun } from '../plugin-run.ts';
import { modelIn } from './choices.ts';
import { completionOf, emptyCompletion } from './completion.ts';
import type { QueryDeps } from './deps.ts';
import type { QueryFields } from './fields.ts';
import { noMaterial } from './material.ts';
import { preparing } from './preparing.ts';
import { query } from './query.ts';
import { timestamp } from './today.ts';
import { plainCall } from '#core/call';
import { textTurn } from '#core/conversation';

export interface AskedOfPlugin extends Omit<AskedPlugin, 'id' | 'digest'> {
  /** Of the question: which model answers, what is looked up. Its message is that of the plugin. */
  readonly fields: QueryFields;
  readonly streams?: true;
}

/** What a plugin answers. @throws Fault `not-found` where there is no such plugin; `invalid` naming the field */
export async function askedOfPlugin(deps: QueryDeps, asked: AskedOfPlugin): Promise<Conversation> {
  const run = await runOf(deps, asked);
  if (!run) throw unknownThing('plugin');
  return answering(deps, run, asked);
}

/** The name of a plugin before the last message, and what stands behind it. */
export function taggedIn(message: QueryFields['message']): { readonly name: string; readonly text: string } | undefined {
  const last = typeof message === 'string' ? message : (message.at(-1)?.message ?? '');
  const found = /^\s{0,100}\[\[([\w-]{1,64})\]\]/.exec(last.slice(0, 300));
  return found ? { name: found[1]!, text: last.slice(found[0].length) } : undefined;
}

/** A question, or what a plugin makes of it whose name stands before it. @throws Fault `forbidden` for a key without the scope of plugins */
export async function maybeTagged(deps: QueryDeps, asked: Omit<AskedOfPlugin, 'name' | 'values' | 'text'>): Promise<Conversation> {
  const tagged = taggedIn(asked.fields.message);
  if (!tagged) return query(deps, asked);
  const all = { ...asked, ...tagged, values: undefined };
  if (asked.caller.scopes?.includes('plugins') === false) {
    if (await deps.plugins.isThere(asked.caller, tagged.name))
      throw new Fault('forbidden', 'A message that runs a plugin needs the scope plugins.', { reason: 'scope' });
    return query(deps, asked);
  }
  const run = await runOf(deps, all);
  return run ? answering(deps, run, all) : query(deps, asked);
}

const runOf = ({ plugins }: QueryDeps, { caller, name, values, text, files, signal }: AskedOfPlugin) =>
  plugins.run({ caller, name, values, ...(text === undefined ? {} : { text }), files, signal });

function answering(deps: QueryDeps, run: PluginRun, { caller, fields, values, text, files, streams }: AskedOfPlugin): Conversation {
  if (run.type === 'question') {
    const system = typeof fields.system_prompt === 'string' ? fields.system_prompt : '';
    const all = { ...fields, message: run.message, system_prompt: system };
    const asked = values === undefined ? (text ?? '').trim() : JSON.stringify(values); // the template may not be the user's to see
    return query(deps, { caller, fields: all, files, asked, whole: run.whole, ...(streams ? { streams } : {}), ...(run.output ? { output: run.output } : {}) });
  }
  if (fields.mode === 'deep_agent')
    throw new Fault('invalid', 'mode: this plugin makes its answer itself, so there is nothing to research.', { field: 'mode' });
  const uuid = randomUUID();
  return new Conversation({
    call: plainCall({ dialect: 'native', model: modelIn(fields.model, deps.defaults().chat, deps.models(caller)), turns: [textTurn('user', '')] }),
    generate: preparing((call) => Promise.resolve(call), run.generate),
    streams: streams ?? fields.streaming ?? undefined,
    app: fields.app_name ?? undefined,
    soFar: (text) => emptyCompletion(uuid, text),
    async whole(result, context) {
      const at = timestamp(deps.clock);
      const wantsUsage = fields.usage === true;
      const completion = completionOf(result, context, { uuid, persona: 1, datasets: 'none', material: noMaterial, wantsUsage, prefix: '', at });
      const { requestId } = context;
      await deps.keep({ uuid, userId: caller.userId, requestId, model: result.started.model, message: '', answer: completion.message, passages: [] });
      return completion;
    },
  });
}
