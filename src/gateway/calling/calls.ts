import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type { ServerToolCall, ToolResultPart } from '#core/conversation';
import type { Generate } from '#core/generate';
import type { CalledTool, ServerTool, ServerTools } from '#core/server-tools';
import type { RoundCall } from './round.ts';

export interface CallingDeps {
  readonly tools: ServerTools;
  readonly inner: Generate;
  /** Takes the permits of a request, and checks that it can be paid for: before calls that wait for its answer are made. @throws Fault as `inner` does */
  readonly admits: (call: GenerateCall, context: Context) => Promise<void>;
}

/** Most calls per request; after these the model is told to answer with what it has. */
export const mostCalls = 100;
export const noCallsLeft = 'No more tools can be called: answer with what you have.';
/** Calls of one round that run at once. */
const atOnce = 8;
/** Characters of a result that a model is shown. */
const mostShown = 200_000;
/** Bytes of all results of a request. */
const mostOfAll = 8_388_608;
const noMore = 'there is no room for more results, which have at most 8 MB together. Answer with what you have.';

/** The tools by the names that models see: one that a tool of the client has is the client's. */
export function named(offered: readonly ServerTool[], taken: ReadonlySet<string>): ReadonlyMap<string, ServerTool> {
  return new Map(offered.flatMap((tool) => (taken.has(tool.declared.name) ? [] : [[tool.declared.name, tool] as const])));
}

export const callOf = ({ id, name, json }: Pick<ServerToolCall, 'id' | 'name' | 'json'>, { server, name: tool, digest }: ServerTool): ServerToolCall => ({
  id,
  name,
  json,
  server,
  tool,
  digest,
});

/** Makes calls, and notes their results. */
export async function made(tools: ServerTools, calls: readonly ServerToolCall[], room: ResultBudget, context: Context): Promise<readonly CalledTool[]> {
  const called: CalledTool[] = [];
  for (let at = 0; at < calls.length; at += atOnce)
    called.push(
      ...(await Promise.all(
        calls.slice(at, at + atOnce).map(async (call) => {
          const { id, name, server } = call;
          if (room.left === 0) return { id, name, server, text: `The tool was not called: ${noMore}`, isError: true };
          const { text, isError } = await tools.call(context.caller, call, context.signal);
          return keptIn(room, { id, name, server, text: cut(text), isError }, context);
        }),
      )),
    );
  (context.progress.called ??= []).push(...called);
  return called;
}

/** The bytes that further results of a request may have: all of them are kept until it ends. */
export interface ResultBudget {
  left: number;
}

export const resultBudget = (): ResultBudget => ({ left: mostOfAll });

function keptIn(room: ResultBudget, one: CalledTool, { memory }: Context): CalledTool {
  const bytes = Buffer.byteLength(one.text);
  if (bytes <= room.left && memory?.take(bytes) !== false) {
    room.left -= bytes;
    return one;
  }
  room.left = 0;
  return { ...one, text: `The tool was called, and its result is left out: ${noMore}`, isError: true };
}

/** Copied: a piece of a string would keep the whole of it. */
const cut = (text: string) => (text.length > mostShown ? `${Buffer.from(text.slice(0, mostShown)).toString()}\n[The rest is left out.]` : text);

export const resultOfCall = ({ id, text, isError }: CalledTool): ToolResultPart => resultOf(id, text, isError);

export const resultOf = (id: string, text: string, failed: boolean): ToolResultPart => ({
  type: 'tool-result',
  id,
  parts: [{ type: 'text', text: text === '' ? '(no text)' : text.toWellFormed() }],
  ...(failed ? { failed } : {}),
});

/** The results of calls of tools that there are not. */
export const unknownOf = (calls: readonly RoundCall[]): readonly ToolResultPart[] =>
  calls.filter(({ of }) => !of).map(({ id }) => resultOf(id, 'There is no such tool.', true));
