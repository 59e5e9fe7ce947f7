import { type GenerateCall, type Output, plainCall } from '#core/call';
import type { Context } from '#core/context';
import { textTurn, wordsIn } from '#core/conversation';
import { Fault } from '#core/fault';
import { fold } from '#core/fold';
import { wholeAnswer, type Generate } from '#core/generate';
import { isObject, textOf, type JsonObject } from '#core/json';
import { withOwnProgress } from '#core/own-progress';
import type { SearchPassages } from '#core/passages';
import { hasScope } from '#core/scopes';
import { stepOf, steps } from '#core/steps';
import { asPlatformSignal } from '#kit/async/platform-signal';
import { ScriptFailed, type Scripts } from '#kit/sandbox/scripts';
import type { DeclaredScript } from '../types.ts';
import type { SendRequest } from './http.ts';

export interface ScriptDeps {
  readonly scripts: Scripts;
  readonly generate: Generate;
  readonly search: SearchPassages;
  readonly send: SendRequest;
}

interface Running {
  readonly script: DeclaredScript;
  readonly values: Readonly<Record<string, unknown>>;
  readonly file: { readonly name: string; readonly text: string } | null;
  /** The model of calls that name none. */
  readonly model: string;
  readonly isOwn: boolean;
  readonly context: Context;
}

const [mostSearches, mostFetches] = [10, 50];

/** Runs the script of a plugin. @returns its text. @throws Fault `unprocessable` saying what the script did wrong, and what stops its calls */
export async function ranScript({ script, values, file, model, isOwn, context }: Running, deps: ScriptDeps): Promise<string> {
  const { caller, signal } = context;
  const hosts = new Set(script.hosts);
  let asked = 0;
  let searched = 0;
  let sent = 0;
  const calls = {
    llm: (args: readonly unknown[], within: AbortSignal) => {
      if (asked >= steps.inner.most) throw new ScriptFailed(`A script asks models at most ${steps.inner.most} times.`);
      const call = callOf(args[0], model);
      const step = stepAt(context.step, asked++);
      return withOwnProgress(context.progress, (progress) =>
        answered(call, { ...withoutChoices(context), step, progress, signal: AbortSignal.any([within, asPlatformSignal(signal)]) }, deps.generate),
      );
    },
    fetch(args: readonly unknown[], within: AbortSignal) {
      if (sent++ >= mostFetches) throw new ScriptFailed(`A script fetches at most ${mostFetches} times.`);
      return fetched(args, hosts, String(caller.userId), within, deps.send);
    },
    async search([question, options]: readonly unknown[], within: AbortSignal) {
      if (!isOwn && hosts.size > 0) throw new ScriptFailed("Another user's script that reaches hosts does not search your datasets.");
      if (!hasScope(caller, ['datasets', 'query'])) throw new ScriptFailed('The key may not search datasets.');
      if (searched++ >= mostSearches) throw new ScriptFailed(`A script searches at most ${mostSearches} times.`);
      return found(question, options, { ...context, signal: within }, deps.search);
    },
  };
  try {
    return await deps.scripts.run({ code: script.code, given: { values, file }, calls, owner: String(caller.userId), signal });
  } catch (error) {
    if (error instanceof ScriptFailed) throw new Fault('unprocessable', `The script of the plugin failed: ${error.message}`);
    throw error;
  }
}

/** Within a run its calls are steps of its own; else the first one is the request's: its row is that of the request. */
const stepAt = (step: number, call: number): number => (step > 0 ? stepOf(step, 'scripted', call) : call === 0 ? 0 : stepOf(0, 'inner', call - 1));

/** The client's choice of models is of its own call. */
const withoutChoices = ({ targets: _, tier: __, ...context }: Context): Context => ({ ...context, strict: false });

const longestPrompt = 400_000;

/** `llm('prompt')`, or `llm({ prompt, system?, model?, max_tokens?, schema? })`. */
function callOf(asked: unknown, usual: string): GenerateCall {
  const { prompt, system, model, max_tokens: maxTokens, schema } = isObject(asked) ? asked : { prompt: asked };
  const question = textOf(prompt);
  if (question.trim() === '' || question.length > longestPrompt) throw new ScriptFailed(`llm takes a prompt of 1 to ${longestPrompt} characters.`);
  const output: Output = isObject(schema) ? { type: 'schema', schema: schema as JsonObject, strict: true } : { type: 'text' };
  return plainCall({
    model: textOf(model) || usual,
    turns: [...(textOf(system) === '' ? [] : [textTurn('system', textOf(system))]), textTurn('user', question)],
    output,
    sampling: typeof maxTokens === 'number' && Number.isInteger(maxTokens) && maxTokens > 0 ? { maxTokens } : {},
  });
}

/** Faults that another try of the script would meet again. */
const ending = new Set(['quota-spent', 'rate-limited', 'forbidden', 'overloaded', 'unauthenticated']);

async function answered(call: GenerateCall, context: Context, generate: Generate): Promise<string> {
  try {
    const { candidates } = fold(await wholeAnswer(generate, call, context));
    return wordsIn(candidates[0]?.parts ?? []);
  } catch (error) {
    if (error instanceof Fault && !ending.has(error.code) && !context.signal.aborted) throw new ScriptFailed(`llm: ${error.message}`);
    throw error;
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** `fetch(url, { method?, headers?, body? })` gives `{ type, text }`. */
async function fetched([address, options]: readonly unknown[], hosts: ReadonlySet<string>, owner: string, signal: AbortSignal, send: SendRequest) {
  const url = URL.parse(textOf(address).slice(0, 8192));
  if (!url || !hosts.has(url.origin)) throw new ScriptFailed('fetch: the address is at none of the hosts that the plugin declares.');
  const { method = 'GET', headers = {}, body } = isObject(options) ? options : {};
  const chosen = methods.find((one) => one === method);
  if (!chosen || !isObject(headers)) throw new ScriptFailed('fetch takes one of the usual methods, and headers as an object of texts.');
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), textOf(value)] as const);
  if (given.length > 50 || !given.every(([name, value]) => isHeader(name) && value.length <= 8192 && !/[^\t\x20-\x7e]/.test(value)))
    throw new ScriptFailed('fetch: a header is not allowed.');
  try {
    const sent = body === undefined || body === null ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const { type, text } = await send({
      method: chosen,
      url: url.href,
      headers: Object.fromEntries(given),
      origins: hosts,
      ...(sent === undefined ? {} : { body: sent }),
      owner,
      signal,
    });
    return { type, text };
  } catch (error) {
    if (error instanceof Fault && error.code !== 'overloaded') throw new ScriptFailed(`fetch: ${error.message}`);
    throw error;
  }
}

/** Headers that belong to the connection. */
const ofConnection = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'keep-alive',
  'expect',
  'accept-encoding',
]);

export const isHeader = (name: string): boolean => /^[a-z0-9-]{1,64}$/.test(name) && !ofConnection.has(name) && !name.startsWith('proxy-');

/** `search('question', { datasets?: 'all' | [names], limit? })` gives passages. */
async function found(asked: unknown, options: unknown, { caller, requestId, step, progress, permits, app, tags, signal }: Context, search: SearchPassages) {
  const question = textOf(asked).slice(0, 2000).toWellFormed();
  if (question.trim() === '') throw new ScriptFailed('search takes a question.');
  const { datasets = 'all', limit = 10 } = isObject(options) ? options : {};
  const names = Array.isArray(datasets) ? datasets.filter((name) => typeof name === 'string').slice(0, 100) : 'all';
  try {
    const { passages } = await search({
      caller,
      datasets: names,
      question,
      limit: typeof limit === 'number' ? Math.min(25, Math.max(1, Math.floor(limit) || 1)) : 10,
      requestId,
      ...(step > 0 ? { step } : {}),
      progress,
      permits,
      app,
      tags,
      signal,
    });
    return passages.map(({ dataset, filename, page, text, score }) => ({ dataset, filename, page, text, score }));
  } catch (error) {
    if (error instanceof Fault && !ending.has(error.code)) throw new ScriptFailed(`search: ${error.message}`);
    throw error;
  }
}
