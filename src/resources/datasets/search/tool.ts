import { Type } from 'typebox';
import { closed } from '#http/schemas';
import type { Context } from '#core/context';
import { Fault } from '#core/fault';
import type { JsonObject } from '#core/json';
import type { OfferedTool, ToolAnswer, ToolSource } from '#core/mcp-offers';
import { placeOf, type Passage, type SearchPassages } from '#core/passages';
import { checked } from '#kit/json/check';

const Asked = closed({
  question: Type.String({ minLength: 1, maxLength: 20_000, description: 'What is looked for, as a question or as words.' }),
  datasets: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 1000 }), {
      minItems: 1,
      maxItems: 1000,
      description: 'Full names of datasets. Absent: each that the user may read.',
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 10, description: 'Most passages.' })),
});

const askedOf = checked(Asked, ({ field, message }) => new Fault('invalid', message, { field }));

const tool: OfferedTool = {
  name: 'search',
  title: 'Search datasets',
  description: 'Finds passages of the files in the datasets of the user, by words and by meaning. Each has its dataset, its file and its page.',
  inputSchema: JSON.parse(JSON.stringify(Asked)) as JsonObject,
  isReadOnly: true,
};

export function searchTool(search: SearchPassages): ToolSource {
  return {
    scopes: ['datasets', 'query'],
    async *tools() {
      yield tool;
    },
    call: async (name, args, context) => (name === tool.name ? found(args, context, search) : undefined),
  };
}

async function found(args: unknown, { caller, requestId, permits, app, tags, signal }: Context, search: SearchPassages): Promise<ToolAnswer> {
  const { question, datasets = 'all', limit = 10 } = askedOf(args);
  const { passages, warnings } = await search({ caller, datasets, question: question.toWellFormed(), limit, requestId, permits, app, tags, signal });
  const shown = passages.map(({ id, dataset, filename, page, score, text }) => ({ id, dataset, filename, page, score, text }));
  const text = [...passages.map(said), ...warnings].join('\n\n');
  return { text: text === '' ? 'Nothing was found.' : text, structured: { passages: shown, warnings: [...warnings] }, isError: false };
}

const said = (passage: Passage, at: number): string => `[${at + 1}] ${passage.dataset}: ${placeOf(passage)}\n${passage.text}`;
