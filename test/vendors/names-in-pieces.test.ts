import { describe, expect, test } from 'vitest';
import { agentOf } from '../support/agents.ts';
import { faces, type Face } from '../support/all-faces.ts';
import { always, replay } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Servers of the chat API differ in how a stream says the name of a tool: at once, in pieces, or again with each piece of the arguments. */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const tools = ['look', 'look_up', 'listen'].map((name) => ({ name, description: 'A tool.', parameters }));

type Piece = readonly [name?: string | undefined, json?: string];

const chunk = (delta: object, reason: string | null = null) =>
  JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] });

const framesOf = (calls: readonly (readonly Piece[])[]) => [
  chunk({ role: 'assistant', content: null }),
  ...calls.flatMap((pieces, index) =>
    pieces.map(([name, json], at) =>
      chunk({
        tool_calls: [
          {
            index,
            ...(at === 0 ? { id: `call_${index}`, type: 'function' } : {}),
            function: { ...(name === undefined ? {} : { name }), ...(json === undefined ? {} : { arguments: json }) },
          },
        ],
      }),
    ),
  ),
  chunk({}, 'tool_calls'),
  '[DONE]',
];

const args = { city: 'Paris' };
const cases: readonly (readonly [string, readonly (readonly Piece[])[], readonly (readonly [string, object])[]])[] = [
  ['in two pieces', [[['look_'], ['up', ''], [undefined, '{"city":'], [undefined, '"Paris"}']]], [['look_up', args]]],
  [
    'in pieces that are names themselves',
    [
      [
        ['look', ''],
        ['_up', ''],
        [undefined, '{"city":"Paris"}'],
      ],
    ],
    [['look_up', args]],
  ],
  ['in pieces of which the last has arguments', [[['look'], ['_', ''], ['up', '{"city":"Paris"}']]], [['look_up', args]]],
  [
    'with every piece',
    [
      [
        ['listen', '{"city"'],
        ['listen', ':"Paris"'],
        ['listen', '}'],
      ],
    ],
    [['listen', args]],
  ],
  [
    'as far as it goes',
    [
      [
        ['look', ''],
        ['look_up', ''],
        ['look_up', '{"city":"Paris"}'],
      ],
    ],
    [['look_up', args]],
  ],
  [
    'that begins another',
    [
      [
        ['look', '{"city":'],
        ['look', '"Paris"}'],
      ],
    ],
    [['look', args]],
  ],
  [
    'of calls without arguments',
    [[['lo'], ['ok']], [['listen', '']]],
    [
      ['look', {}],
      ['listen', {}],
    ],
  ],
  ['of an unknown tool', [[['smell_'], ['it', ''], [undefined, '{"city":"Paris"}']]], [['smell_it', args]]],
];

/** Arguments without a character are no JSON, for clients that read them themselves. */
const readBy = (face: Face) => cases.filter(([name]) => name !== 'of calls without arguments' || face === 'messages' || face === 'gencompat');

describe.each(faces)('a client of %s', (face) => {
  test.each(readBy(face))('reads a name %s', async (_, calls, wanted) => {
    upstream.script(always(replay(framesOf(calls))));
    // A choice of two makes a request that is not forwarded as it came.
    const fields = face === 'chat' ? { tool_choice: 'auto', stop: [''] } : {};
    const said = await agentOf(server, face, { model: 'chat', stream: true, tools, fields }).say('Which?');
    expect([said.status, said.calls.map(({ name, arguments: given }) => [name, given])]).toEqual([200, wanted]);
  });
});
