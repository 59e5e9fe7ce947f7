import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { always, badRequest, ok, type Behaviour } from '../support/fakes/upstream/index.ts';
import { recordingOf } from '../support/recordings.ts';
import { scriptedHosts } from '../support/scripted-hosts.ts';

/** Chat providers whose templates demand an order of roles, or texts as strings: what they refuse teaches them the shape of messages that they accept. */

const { upstream, server } = await scriptedHosts(
  ['api.groq.com'],
  ({ url }) => `
providers:
  unknown: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  groq: { dialect: openai-chat, baseUrl: "https://api.groq.com/openai/v1", apiKeys: [k] }
models:
  at-groq: { targets: [{ provider: groq, model: llama-3.3-70b-versatile }] }
  "*": { targets: [{ provider: unknown }] }
routing: { cooldownSeconds: 0 }
`,
);

interface Message {
  readonly role: string;
  readonly content: unknown;
  readonly tool_calls?: unknown;
}
type Refusal = { readonly status?: number; readonly json: object };

const messagesOf = (at = -1) => (upstream.requests.at(at)!.json as { readonly messages: readonly Message[] }).messages;
const said = (at?: number) => messagesOf(at).map(({ role, content }) => [role, content]);
const error = (message: string, more: object = {}, status = 400): Refusal => ({ status, json: { error: { message, type: 'BadRequestError', ...more } } });

const refusing = (isRefused: (messages: readonly Message[]) => boolean, { status = 400, json }: Refusal): Behaviour =>
  always({
    name: 'refusing',
    answer(exchange) {
      if (!isRefused((exchange.request.json as { readonly messages: readonly Message[] }).messages)) return ok().answer(exchange);
      return { status, headers: { 'content-type': 'application/json' }, body: [JSON.stringify(json)], framing: 'chunked', end: 'finish' };
    },
  });

let count = 0;
const freshModel = () => `model-${++count}`;
const ask = (face: Face, model: string, more: object, stream = false) => askFace(server, face, { model, content: 'hi', stream, more });

/** Asks twice: the first request is refused and repeated, the second is right at once. */
async function learns(face: Face, more: object): Promise<string | null> {
  const model = freshModel();
  let warnings: string | null = null;
  for (const stream of [false, true]) {
    const { status, complete, headers } = await ask(face, model, more, stream);
    expect({ status, complete }).toEqual({ status: 200, complete: true });
    warnings = headers.get('x-dragoman-warnings');
  }
  expect(upstream.requests).toHaveLength(3);
  expect(said(2)).toEqual(said(1));
  return warnings;
}

const inner = 'system: a system message in the middle is sent as text of the user.';
const isSystem = ({ role }: Message) => role === 'system' || role === 'developer';

const input = (role: string, text: string) => ({ type: 'message', role, content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }] });
const call = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' };
const output = { type: 'function_call_output', call_id: 'call_1', output: 'seen' };

describe('a template that wants one system message, at the front', () => {
  const isRefused = (messages: readonly Message[]) => messages.some((message, at) => at > 0 && isSystem(message));
  const first = 'System message must be at the beginning.';

  test.each<[string, Refusal]>([
    ['vLLM', error(first, { param: null, code: 400 })],
    [
      'llama.cpp',
      error(
        `Unable to generate parser for this template. Automatic parser generation failed: \n------------\nWhile executing CallExpression at line 85, column 32 in source:\n...first %}↵            {{- raise_exception('System message must be at the beginnin...\n                                           ^\nError: Jinja Exception: ${first}`,
      ),
    ],
    ['llama.cpp, with 500', error(`Jinja Exception: ${first}`, { code: 500, type: 'server_error' }, 500)],
    ['Mistral', { json: { object: 'error', message: "Unexpected role 'system' after role 'user'", type: 'invalid_request_message_order', code: '3230' } }],
  ])('has those at the front as one (%s)', async (_, refusal) => {
    upstream.script(refusing(isRefused, refusal));
    const more = { instructions: 'I', input: [{ role: 'developer', content: 'D' }, input('user', 'do'), input('assistant', 'done'), input('developer', 'E')] };
    expect(await learns('responses', more)).toContain(inner);
    expect(said(0).map(([role]) => role)).toEqual(['system', 'system', 'user', 'assistant', 'system']);
    expect(said()).toEqual([
      ['system', 'I\n\nD'],
      ['user', 'do'],
      ['assistant', 'done'],
      ['user', 'E'],
    ]);
  });

  test('has the parts of those at the front as parts of one, and nothing else is changed', async () => {
    upstream.script(refusing(isRefused, error(first)));
    const skills = {
      ...input('developer', 'Skills'),
      content: [
        { type: 'input_text', text: 'Skills' },
        { type: 'input_text', text: 'Apps' },
      ],
    };
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    const turns = [input('user', '<env>'), input('user', 'do'), call, output];
    expect(await learns('responses', { tools, input: [input('developer', 'You are codex.'), skills, ...turns] })).toBeNull();
    const text = (one: string) => ({ type: 'text', text: one });
    expect(said()).toEqual([
      ['system', [text('You are codex.'), text('Skills'), text('Apps')]],
      ['user', '<env>'],
      ['user', 'do'],
      ['assistant', null],
      ['tool', 'seen'],
    ]);
  });

  test('has a later one as text of the user behind the results of the tools', async () => {
    upstream.script(refusing(isRefused, error(first)));
    const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
    const messages = [
      { role: 'user', content: 'look' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'seen' }] },
      { role: 'system', content: 'Be brief.' },
    ];
    expect(await learns('messages', { system: 'Be kind.', tools, messages })).toContain(inner);
    expect(said()).toEqual([
      ['system', 'Be kind.'],
      ['user', 'look'],
      ['assistant', null],
      ['tool', 'seen'],
      ['user', 'Be brief.'],
    ]);
  });

  test('has those of chat clients so, too, and forwards what is in order', async () => {
    upstream.script(refusing(isRefused, error(first)));
    const user = { role: 'user', content: 'hi' };
    const model = freshModel();
    const messages = [{ role: 'system', content: 'A' }, { role: 'system', content: [{ type: 'text', text: 'B' }] }, user];
    expect((await ask('chat', model, { messages })).status).toBe(200);
    expect(said()).toEqual([
      ['system', 'A\n\nB'],
      ['user', 'hi'],
    ]);
    const plain = [{ role: 'system', content: [{ type: 'text', text: 'A' }] }, user];
    expect((await ask('chat', model, { messages: plain })).status).toBe(200);
    expect(messagesOf()).toEqual(plain);
    expect(upstream.requests).toHaveLength(3);
  });

  test('is not learned from, where nothing can be changed', async () => {
    upstream.script(refusing(() => true, error(first)));
    expect((await ask('responses', freshModel(), { instructions: 'I' })).status).toBe(400);
    expect(upstream.requests).toHaveLength(1);
  });
});

describe('a template in which the user and the model take turns', () => {
  /** As Mistral's: calls of tools and their results do not count. */
  const isRefused = (messages: readonly Message[]) =>
    messages.some((message, at) => at > 0 && isSystem(message)) ||
    messages
      .filter(({ role, tool_calls: calls }) => role === 'user' || (role === 'assistant' && calls === undefined))
      .some(({ role }, at) => (role === 'user') !== (at % 2 === 0));

  const wordings = [
    'Conversation roles must alternate user/assistant/user/assistant/...',
    'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...',
    'After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).',
  ];
  const shapes: readonly [Face, object][] = [
    ['responses', { instructions: 'I', input: [input('developer', 'D'), input('user', '<env>'), input('user', 'do')] }],
    ['messages', { system: 'I\n\nD', messages: ['<env>', 'do'].map((content) => ({ role: 'user', content })) }],
    ['gencompat', { systemInstruction: { parts: [{ text: 'I\n\nD' }] }, contents: ['<env>', 'do'].map((text) => ({ role: 'user', parts: [{ text }] })) }],
    [
      'chat',
      {
        messages: [
          { role: 'system', content: 'I' },
          { role: 'developer', content: 'D' },
          { role: 'user', content: '<env>' },
          { role: 'user', content: 'do' },
        ],
      },
    ],
  ];
  test.each(shapes.flatMap(([face, more]) => wordings.map((message) => ({ face, more, message }))))(
    'has neighbours of the user as one message ($face: $message)',
    async ({ face, more, message }) => {
      upstream.script(refusing(isRefused, error(message)));
      await learns(face, more);
      expect(said()).toEqual([
        ['system', 'I\n\nD'],
        ['user', '<env>\n\ndo'],
      ]);
    },
  );

  test.each([
    ['alice', 'alice', null],
    ['alice', 'bob', expect.stringContaining('messages: neighbours of one role are sent as one')],
  ])('has neighbours with one name; a second name that is lost is told of (%s, %s)', async (first, second, warnings) => {
    upstream.script(refusing(isRefused, error(wordings[0]!)));
    const messages = [first, second].map((name) => ({ role: 'user', name, content: `of ${name}` }));
    expect(await learns('chat', { messages })).toEqual(warnings);
    expect(messagesOf()).toEqual([{ role: 'user', name: first, content: `of ${first}\n\nof ${second}` }]);
  });

  test('has an image beside its text, and a word of the model between a result and what the user says', async () => {
    upstream.script(refusing(isRefused, error(wordings[0]!)));
    const image = { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' };
    const turns = [input('user', 'look'), { role: 'user', content: [image] }, call, output, input('developer', 'Be brief.'), input('user', 'and?')];
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    expect(await learns('responses', { tools, input: turns })).toContain('a short one was added there');
    expect(said()).toEqual([
      ['user', [{ type: 'text', text: 'look' }, expect.objectContaining({ type: 'image_url' })]],
      ['assistant', null],
      ['tool', 'seen'],
      ['assistant', 'I have the result.'],
      ['user', 'Be brief.\n\nand?'],
    ]);
  });
});

describe('a template without system messages', () => {
  const alternate = 'Conversation roles must alternate user/assistant/user/assistant/...';

  test.each(['System role not supported', 'Only user and assistant roles are supported!', 'Only user, assistant and tool roles are supported', alternate])(
    'has them as text of the user, at the front of what the user says where roles alternate (%s)',
    async (message) => {
      upstream.script(
        always({
          name: 'without system',
          answer(exchange) {
            const { messages } = exchange.request.json as { readonly messages: readonly Message[] };
            const refused = messages.some(isSystem) ? message : messages.some(({ role }, at) => role === messages[at - 1]?.role) ? alternate : undefined;
            return (refused === undefined ? ok({ text: '{}' }) : badRequest({ message: refused })).answer(exchange);
          },
        }),
      );
      const model = freshModel();
      const conversation = { instructions: 'Be brief.', input: [input('user', 'do')] };
      const { status, headers } = await ask('responses', model, conversation);
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('system: a system message is sent as text of the user.')]);
      const messages = [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'do' },
      ];
      expect((await ask('chat', model, { messages }, true)).complete).toBe(true);
      expect(upstream.requests).toHaveLength(4);
      for (const at of [2, 3]) expect(said(at)).toEqual([['user', 'Be brief.\n\ndo']]);
    },
  );
});

describe('a server that takes only strings', () => {
  const isRefused = (messages: readonly Message[]) => messages.some(({ role, content }) => role !== 'user' && Array.isArray(content));
  const groqs = `'messages.0' : for 'role:system' the following must be satisfied[('messages.0.content' : value must be a string)]`;
  const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
  const text = (one: string) => ({ type: 'text', text: one });
  const conversation = {
    system: [text('a'), text('b')],
    tools,
    messages: [
      { role: 'user', content: 'look' },
      { role: 'assistant', content: [text('I lo'), text('ok.'), { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [text('one'), text('two')] }] },
    ],
  };
  const asStrings = [
    ['system', 'a\n\nb'],
    ['user', 'look'],
    ['assistant', 'I look.'],
    ['tool', 'one\ntwo'],
  ];

  test.each<[string, Refusal]>([
    ['Groq', error(groqs)],
    ['Cerebras', error('body.messages.0.system.content: Input should be a valid string', {}, 422)],
    ['pydantic', { status: 422, json: { detail: [{ type: 'string_type', loc: ['body', 'messages', 0, 'content'], msg: 'Input should be a valid string' }] } }],
    [
      'serde',
      error('Failed to deserialize the JSON body into the target type: messages[0]: invalid type: sequence, expected a string at line 1 column 85', {}, 422),
    ],
    ['Go', error('json: cannot unmarshal array into Go struct field ChatMessage.messages.content of type string')],
    ['OpenAI', error("Invalid type for 'messages[0].content': expected a string, but got an array instead.", { param: 'messages[0].content' })],
  ])('has texts as one string (%s)', async (_, refusal) => {
    upstream.script(refusing(isRefused, refusal));
    expect(await learns('messages', conversation)).toBeNull();
    expect(said()).toEqual(asStrings);
  });

  test.each<[Face, object]>([
    ['responses', { input: [{ role: 'developer', content: ['a', 'b'].map((one) => ({ type: 'input_text', text: one })) }, input('user', 'look')] }],
    ['gencompat', { systemInstruction: { parts: [{ text: 'a' }, { text: 'b' }] }, contents: [{ role: 'user', parts: [{ text: 'look' }] }] }],
  ])('has texts of the system as one string (%s)', async (face, more) => {
    upstream.script(refusing(isRefused, error(groqs)));
    await learns(face, more);
    expect(said()).toEqual(asStrings.slice(0, 2));
  });

  test('is known at Groq, where a chat client has its lists forwarded', async () => {
    upstream.script(always(ok()));
    await ask('messages', 'at-groq', conversation);
    expect(said()).toEqual(asStrings);
    const messages = [{ role: 'user', content: [text('a'), text('b')] }];
    await ask('chat', 'at-groq', { messages });
    expect(messagesOf()).toEqual(messages);
  });

  test('keeps lists elsewhere, and where there is more than text', async () => {
    upstream.script(always(ok()));
    const model = freshModel();
    await ask('messages', model, conversation);
    expect(said(0)[0]).toEqual(['system', [text('a'), text('b')]]);
    upstream.script(refusing(isRefused, error(groqs)));
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
    const messages = [{ role: 'user', content: [text('look'), image] }];
    expect((await ask('messages', model, { system: conversation.system, messages })).status).toBe(200);
    expect(messagesOf()[1]!.content).toMatchObject([text('look'), { type: 'image_url' }]);
  });
});

describe('a template that demands all of this', () => {
  const recorded = JSON.parse(readFileSync(recordingOf('openai-responses', 'requests.json'), 'utf8')) as readonly {
    readonly name: string;
    readonly body: object;
  }[];
  const demands: readonly [(messages: readonly Message[]) => boolean, string][] = [
    [(messages) => messages.some((message, at) => at > 0 && isSystem(message)), 'System message must be at the beginning.'],
    [
      (messages) => messages.some(({ role }, at) => role === 'user' && messages[at - 1]?.role === 'user'),
      'Conversation roles must alternate user/assistant/user/assistant/...',
    ],
    [(messages) => messages.some(({ content }) => Array.isArray(content)), 'messages.0.content: Input should be a valid string'],
  ];

  test.each(recorded.filter(({ name }) => name.startsWith('codex')))('answers $name', async ({ body }) => {
    upstream.script(
      always({
        name: 'demanding',
        answer(exchange) {
          const { messages } = exchange.request.json as { readonly messages: readonly Message[] };
          const refused = demands.find(([isRefused]) => isRefused(messages));
          return (refused ? badRequest({ message: refused[1] }) : ok()).answer(exchange);
        },
      }),
    );
    const model = freshModel();
    for (let at = 0; at < 2; at++)
      expect((await askFace(server, 'responses', { model, content: '', stream: true, more: { ...body, model } })).complete).toBe(true);
    expect(upstream.requests).toHaveLength(5);
    expect(
      said(0)
        .map(([role]) => role)
        .slice(0, 4),
    ).toEqual(['system', 'system', 'user', 'user']);
    expect(said(3).slice(0, 2)).toEqual([
      ['system', expect.stringMatching(/Codex[^]*<skills_instructions>/)],
      ['user', expect.stringMatching(/^<environment_context>[^]*\n\nwhat is the weather$/)],
    ]);
    expect(said(4)).toEqual(said(3));
  });
});

describe("a template that knows no role 'developer'", () => {
  const optional = 'Only user and assistant roles are supported, with the exception of an initial optional system message!';
  const alternate = 'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...';

  test.each([alternate, optional])('has that text as its system message, and others keep theirs (%s)', async (message) => {
    upstream.script(refusing((messages) => messages.some(({ role }) => role === 'developer'), error(message)));
    const model = freshModel();
    const begunBy = (role: string) => ({
      messages: [
        { role, content: 'Be brief.' },
        { role: 'user', content: 'do' },
      ],
    });
    const first = await ask('chat', model, begunBy('developer'));
    expect([first.status, first.headers.get('x-dragoman-warnings')]).toEqual([200, null]);
    expect((await ask('chat', model, begunBy('system'))).status).toBe(200);
    expect(upstream.requests).toHaveLength(3);
    for (const at of [1, 2])
      expect(said(at)).toEqual([
        ['system', 'Be brief.'],
        ['user', 'do'],
      ]);
  });
});
