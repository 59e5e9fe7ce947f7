import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';

/** The wires whose clients name files by the same ids. */
const wires: ReadonlySet<string> = new Set(['openai-chat', 'openai-responses']);

/** Whose files a provider of these wires has. */
export interface FileQuirks {
  /** False: those that clients upload to OpenAI are not there. */
  readonly openaiFiles?: false;
}

/**
 * The call without the ids of files that were uploaded to another API: what is left of such a file is its kind, for warnings. The same call where there are none.
 *
 * @param wire what a client wrote in its words is between it and the provider
 */
export function ownFilesOf(call: GenerateCall, wire: string, { openaiFiles }: FileQuirks): GenerateCall {
  const { dialect, turns } = call;
  if (dialect === undefined || dialect === wire || (wires.has(dialect) && openaiFiles !== false) || !turns.some(({ parts }) => parts.some(hasFile)))
    return call;
  const named = <Any extends Part>(part: Any) =>
    part.type === 'media' && part.fileId !== undefined ? { type: 'foreign' as const, dialect, value: { type: `${part.kind} by file id` } } : part;
  return {
    ...call,
    turns: turns.map((turn) => ({
      ...turn,
      parts: turn.parts.map((part) => (part.type === 'tool-result' ? { ...part, parts: part.parts.map(named) } : named(part))),
    })),
  };
}

const hasFile = (part: Part): boolean => (part.type === 'tool-result' ? part.parts.some(hasFile) : part.type === 'media' && part.fileId !== undefined);
