import type { FunctionTool } from '#core/conversation';
import type { JsonObject } from '#core/json';
import type { Run, ToolOutcome } from '#core/run';

/** Reads pieces of texts that are too long for a model to be shown whole. */
export const scratchTool = {
  type: 'function',
  name: 'read_scratch',
  description: 'Reads a piece of a text that was too long to be shown whole: a result of a tool, or an attached file.',
  parameters: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'The name that was given for the text.' },
      from: { type: 'integer', minimum: 0, description: 'The first character, counted from 0.' },
      length: { type: 'integer', minimum: 1, maximum: 16_000, description: 'Characters: 16000 at most, and by default.' },
    },
    required: ['name'],
  },
} as const satisfies FunctionTool;

const mostRead = 16_000;

export async function scratchRead(run: Pick<Run, 'scratch'>, files: readonly { readonly text: string }[], args: JsonObject): Promise<ToolOutcome> {
  const { name } = args;
  if (typeof name !== 'string') return { text: 'name is required: a text.', isError: true };
  const from = countIn(args['from'], 0);
  const length = Math.min(mostRead, countIn(args['length'], mostRead));
  const file = /^file-(\d{1,3})$/.exec(name);
  const whole = file ? files[Number(file[1]) - 1]?.text : undefined;
  const found = whole === undefined ? await run.scratch(name, from, length) : { text: whole.slice(from, from + length), length: whole.length };
  if (!found) return { text: 'There is no such text.', isError: true };
  return { text: `[Characters ${from} to ${Math.min(from + length, found.length)} of ${found.length}]\n${found.text}`, isError: false };
}

const countIn = (value: unknown, usual: number): number => (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : usual);
