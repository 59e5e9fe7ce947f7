import type { Agent, AgentDefinition } from './types.ts';

const made = new Date('2026-12-03T00:00:00Z');

const agent = (id: number, uuid: string, definition: AgentDefinition): Agent => ({
  id,
  uuid,
  version: 1,
  definition,
  isPublished: true,
  createdAt: made,
  updatedAt: made,
});

export const builtInAgents: readonly Agent[] = [
  agent(1, '6f1d2c5e-6a43-4f0e-9d53-0f6f8f4c1a01', {
    name: 'Research Assistant',
    description: 'Looks a question up in your datasets, in several steps where one is not enough, and answers with its sources.',
    mode: 'autonomous',
    instructions: `You answer questions from the user's own documents. Search before you answer; search again in other words, or for what is missing, until you have what the answer needs or it is plain that it is not there. Base every statement on what you found, cite it by its number in square brackets, and say what the documents do not answer. Write plainly, in the language of the question.`,
    tools: [{ type: 'dataset', dataset: 'all' }],
  }),
  agent(2, '6f1d2c5e-6a43-4f0e-9d53-0f6f8f4c1a02', {
    name: 'Document Editor',
    description: 'Summarises, rewrites or translates a text or an attached file.',
    mode: 'single',
    instructions: `You edit documents. Do what the message asks with the text in it or in the attached file: summarise it, rewrite it, translate it, or correct it. Use a tool where one does exactly that. Keep names, numbers and dates, add nothing of your own, and answer with the text alone.`,
    tools: [
      { type: 'plugin', plugin: 1 },
      { type: 'plugin', plugin: 2 },
      { type: 'plugin', plugin: 3 },
    ],
  }),
];
