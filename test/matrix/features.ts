/** Features of calls: how each interface asks for them, and how one sees that they arrived on a wire. */
import type { Face } from '../support/all-faces.ts';
import type { WireName } from '../support/fakes/vendors/vendor.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- bodies of four dialects
type Any = any;

type Arrives = Readonly<Partial<Record<WireName, (body: Any, text: string, face: Face) => unknown>>>;
type Models = Readonly<Partial<Record<WireName, string>>>;

export interface Feature {
  readonly name: string;
  /** What the interface sends besides model and user text; an interface that has no words for it is absent. */
  readonly asked: Readonly<Partial<Record<Face, Any>>>;
  /** Is it there in the body that arrives? Absent: nothing of it can be seen there, on any wire. */
  readonly arrives?: Arrives;
  /** Is it there in the answer of the interface? */
  readonly comes?: (
    said: { readonly text: string; readonly thought: string; readonly calls: readonly Any[]; readonly raw: string },
    face: Face,
    wire: WireName,
  ) => unknown;
  /** Models that are not the usual ones of the wire. */
  readonly models?: Models;
  /** Only these wires are looked at. */
  readonly wires?: readonly WireName[];
  /** What a warning or a refusal of it says. */
  readonly word: RegExp;
  /** The agent goes on: the result of its call is given back, and the second request is looked at. */
  readonly loop?: true;
  /** The conversation is stored, and gone on from by the id of the response. */
  readonly stored?: true;
}

/** Members of a request besides the conversation; `turns` replaces what the user says, in the words of the interface. */
const all = (value: Any): Feature['asked'] => ({ chat: value, responses: value, messages: value, gencompat: value });
const contains = (part: string): Arrives => ({ chat: has(part), responses: has(part), messages: has(part), gemini: has(part) });
/** Texts that do not run together. */
const apart = (one: string, other: string): Arrives => {
  const areApart = (_: Any, text: string) => text.includes(one) && text.includes(other) && !text.includes(one + other);
  return { chat: areApart, responses: areApart, messages: areApart, gemini: areApart };
};
const anyOf = (...parts: readonly string[]): Arrives => ({
  chat: hasOne(parts),
  responses: hasOne(parts),
  messages: hasOne(parts),
  gemini: hasOne(parts),
});
const hasOne = (parts: readonly string[]) => (_: Any, text: string) => parts.some((part) => text.includes(part));
const has = (part: string) => (_: Any, text: string) => text.includes(part);

const parameters = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'], additionalProperties: false };
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const tool = { name: 'look', description: 'Looks.', parameters };
const chatTools = { tools: [{ type: 'function', function: tool }] };
const responsesTools = { tools: [{ type: 'function', strict: false, ...tool }] };
const messagesTools = { tools: [{ name: 'look', description: 'Looks.', input_schema: parameters }] };
const geminiTools = { tools: [{ functionDeclarations: [{ name: 'look', description: 'Looks.', parametersJsonSchema: parameters }] }] };
const tools = { chat: chatTools, responses: responsesTools, messages: messagesTools, gencompat: geminiTools };
const using = (text: string) => ({ chat: { text }, responses: { text }, messages: { text }, gencompat: { text } });

/** The members of two askings. */
function both(a: Feature['asked'], b: Feature['asked']): Feature['asked'] {
  const faces = (Object.keys(a) as Face[]).filter((face) => face in b);
  return Object.fromEntries(faces.map((face) => [face, { ...a[face], ...b[face] }]));
}

/** Stands for the address of a site that has the files below: a provider that fetches nothing is sent their content. */
export const site = 'https://files.example';
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pdf = 'JVBERi0xLjQKJcOkw7zDtsOfCg==';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEA';

/** What the site has, with its media type. */
export const siteFiles: Readonly<Record<string, readonly [type: string, base64: string]>> = {
  '/a.png': ['image/png', png],
  '/a.pdf': ['application/pdf', pdf],
};

/** A user turn with this part after the text. */
const withParts = (chat: Any, responses: Any, messages: Any, gencompat: Any): Feature['asked'] => ({
  ...(chat ? { chat: { turns: [{ role: 'user', content: [{ type: 'text', text: 'good day' }, chat] }] } } : {}),
  ...(responses ? { responses: { turns: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'good day' }, responses] }] } } : {}),
  ...(messages ? { messages: { turns: [{ role: 'user', content: [{ type: 'text', text: 'good day' }, messages] }] } } : {}),
  ...(gencompat ? { gencompat: { turns: [{ role: 'user', parts: [{ text: 'good day' }, gencompat] }] } } : {}),
});

/** A call and its result, in the words of each interface. */
const history = (args: string, result: { chat?: Any; responses?: Any; messages?: Any; gencompat?: Any }): Feature['asked'] =>
  both(tools, {
    ...('chat' in result
      ? {
          chat: {
            turns: [
              { role: 'user', content: 'good day' },
              { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: args } }] },
              { role: 'tool', tool_call_id: 'call_1', content: result.chat },
            ],
          },
        }
      : {}),
    ...('responses' in result
      ? {
          responses: {
            turns: [
              { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'good day' }] },
              { type: 'function_call', call_id: 'call_1', name: 'look', arguments: args },
              { type: 'function_call_output', call_id: 'call_1', output: result.responses },
            ],
          },
        }
      : {}),
    ...('messages' in result
      ? {
          messages: {
            turns: [
              { role: 'user', content: 'good day' },
              { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: JSON.parse(args) as object }] },
              { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', ...result.messages }] },
            ],
          },
        }
      : {}),
    ...('gencompat' in result
      ? {
          gencompat: {
            turns: [
              { role: 'user', parts: [{ text: 'good day' }] },
              { role: 'model', parts: [{ functionCall: { name: 'look', args: JSON.parse(args) as object } }] },
              { role: 'user', parts: [{ functionResponse: { name: 'look', ...result.gencompat } }] },
            ],
          },
        }
      : {}),
  });

const config = (members: object) => ({ config: members });
const call = ({ calls }: { readonly calls: readonly Any[] }) => calls.length === 1 && calls[0].name === 'look' && calls[0].arguments.at === 'Paris';
const answered = ({ text }: { readonly text: string }) => text.includes('good day');
const toolsOf = (body: Any): Any[] => body.tools ?? [];
const inOrder = (_: Any, text: string) => text.indexOf('good day') < text.indexOf('be an owl') && text.indexOf('be an owl') < text.indexOf('how are you');

/** Reasoning on each wire. */
const reasoning: Models = { chat: 'gpt-5.1', responses: 'gpt-5-on-responses', messages: 'claude-opus-4-6', gemini: 'gemini-2.5-flash' };
/** Those that show thoughts and want them back. */
const thoughtful: Models = { ...reasoning, chat: 'deepseek-v4', gemini: 'gemini-3-flash-preview' };
/** Those that take what newer models refuse. */
const older: Models = { responses: 'gpt-4o-on-responses', messages: 'claude-haiku-4-5', gemini: 'gemini-2.5-flash' };

export const features: readonly Feature[] = [
  { name: 'Text', asked: all({}), arrives: contains('good day'), comes: answered, word: /./ },
  {
    name: 'System text at the front',
    asked: { chat: { system: 'be an owl' }, responses: { system: 'be an owl' }, messages: { system: 'be an owl' }, gencompat: { system: 'be an owl' } },
    arrives: {
      chat: ({ messages: [first] }) => /system|developer/.test(first.role) && JSON.stringify(first).includes('be an owl'),
      responses: ({ instructions, input }) => (instructions ?? JSON.stringify(input[0])).includes('be an owl'),
      messages: ({ system }) => JSON.stringify(system).includes('be an owl'),
      gemini: ({ systemInstruction }) => JSON.stringify(systemInstruction).includes('be an owl'),
    },
    word: /system/,
  },
  {
    name: 'System text in the middle',
    asked: {
      chat: {
        turns: [
          { role: 'user', content: 'good day' },
          { role: 'assistant', content: 'hello' },
          { role: 'system', content: 'be an owl' },
          { role: 'user', content: 'how are you' },
        ],
      },
      responses: {
        turns: [
          { role: 'user', content: 'good day' },
          { role: 'assistant', content: 'hello' },
          { role: 'developer', content: 'be an owl' },
          { role: 'user', content: 'how are you' },
        ],
      },
      messages: {
        turns: [
          { role: 'user', content: 'good day' },
          { role: 'system', content: 'be an owl' },
          { role: 'assistant', content: 'hello' },
          { role: 'user', content: 'how are you' },
        ],
      },
    },
    arrives: { chat: inOrder, responses: inOrder, messages: inOrder, gemini: inOrder },
    models: { messages: 'claude-opus-4-8' },
    word: /system/,
  },
  {
    name: 'Nothing but system text',
    asked: { chat: { turns: [{ role: 'system', content: 'be an owl' }] }, responses: { turns: [{ role: 'developer', content: 'be an owl' }] } },
    arrives: contains('be an owl'),
    word: /system/,
  },
  {
    name: 'A message without text',
    asked: {
      chat: { turns: [{ role: 'user', content: '' }] },
      responses: { turns: [{ role: 'user', content: '' }] },
      messages: { system: 'be an owl', turns: [{ role: 'user', content: [{ type: 'text', text: '' }] }] },
      gencompat: { turns: [{ role: 'user', parts: [{ text: '' }] }] },
    },
    word: /messages|content/,
  },
  {
    name: 'Function tools',
    asked: both(tools, using('use the tool')),
    arrives: contains('"look"'),
    comes: call,
    word: /tool/,
  },
  {
    name: 'Functions, the older form of tools',
    asked: { chat: { text: 'use the tool', functions: [tool], function_call: { name: 'look' } } },
    arrives: contains('"look"'),
    comes: ({ raw }, _, wire) => wire === 'chat' || /"function_call":\{"name":"look"/.test(raw),
    word: /function/,
  },
  {
    name: 'A stored conversation, gone on from by its id',
    asked: { responses: { ...responsesTools, text: 'use the tool' } },
    loop: true,
    stored: true,
    arrives: contains('use the tool'),
    comes: ({ text }) => text.startsWith('The tool said: '),
    word: /previous_response_id/,
  },
  {
    name: 'Tool loop, thoughts given back',
    asked: both(tools, {
      chat: { text: 'use the tool', reasoning_effort: 'high' },
      responses: { text: 'use the tool', reasoning: { effort: 'high', summary: 'auto' }, include: ['reasoning.encrypted_content'], store: false },
      messages: { text: 'use the tool', max_tokens: 8000, thinking: { type: 'enabled', budget_tokens: 4000 } },
      gencompat: { text: 'use the tool', config: { thinkingConfig: { includeThoughts: true, thinkingBudget: 4000 } } },
    }),
    loop: true,
    arrives: {
      chat: ({ messages }) => messages.some(({ reasoning_content: thought }: Any) => thought?.includes('The user wants something.')),
      responses: has('gAAAAAB-sealed-by-openai-'),
      messages: has('EqQBclaude-signed-'),
      gemini: has('CiQBgemini-signed-'),
    },
    models: thoughtful,
    word: /thought|thinking|reasoning/,
  },
  {
    name: 'Parallel calls, results in one turn',
    asked: both(tools, using('use the tool twice')),
    loop: true,
    comes: ({ text }) => text.startsWith('The tool said: '),
    word: /tool/,
  },
  {
    name: 'Parallel calls off',
    asked: both(tools, {
      chat: { parallel_tool_calls: false },
      responses: { parallel_tool_calls: false },
      messages: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    }),
    arrives: {
      chat: ({ parallel_tool_calls: parallel }) => parallel === false,
      responses: ({ parallel_tool_calls: parallel }) => parallel === false,
      messages: ({ tool_choice: choice }) => choice?.disable_parallel_tool_use === true,
    },
    word: /parallel/,
  },
  {
    name: 'Result with an image',
    asked: history('{}', {
      responses: [{ type: 'input_image', image_url: `data:image/png;base64,${png}` }],
      messages: { content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }] },
      gencompat: { response: { output: 'see' }, parts: [{ inlineData: { mimeType: 'image/png', data: png } }] },
    }),
    arrives: contains(png),
    word: /image|tool result/,
  },
  {
    name: 'Result with a PDF',
    asked: history('{}', {
      responses: [{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` }],
      messages: { content: [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }] },
      gencompat: { response: { output: 'see' }, parts: [{ inlineData: { mimeType: 'application/pdf', data: pdf } }] },
    }),
    arrives: contains(pdf),
    word: /file|document|tool result/,
  },
  {
    name: 'Result of several texts',
    asked: history('{}', {
      chat: [
        { type: 'text', text: 'an owl' },
        { type: 'text', text: 'a cat' },
      ],
      responses: [
        { type: 'input_text', text: 'an owl' },
        { type: 'input_text', text: 'a cat' },
      ],
      messages: {
        content: [
          { type: 'text', text: 'an owl' },
          { type: 'text', text: 'a cat' },
        ],
      },
    }),
    arrives: apart('an owl', 'a cat'),
    word: /tool result/,
  },
  {
    name: 'Result that is a search result',
    asked: history('{}', {
      messages: { content: [{ type: 'search_result', source: 'https://a.example', title: 'An owl', content: [{ type: 'text', text: 'owls fly' }] }] },
    }),
    arrives: contains('owls fly'),
    word: /search_result|tool result/,
  },
  {
    name: 'Result of a call that failed',
    asked: history('{}', { messages: { content: 'no', is_error: true }, gencompat: { response: { error: 'no' } } }),
    arrives: { messages: has('"is_error":true'), gemini: ({ contents }) => JSON.stringify(contents).includes('"response":{"error"') },
    word: /tool result|failed|error/,
  },
  {
    name: 'Numbers in arguments and results keep their digits',
    asked: history('{"at":1}', {
      chat: '{"n":12345678901234567890,"m":1.10}',
      responses: '{"n":12345678901234567890,"m":1.10}',
      messages: { content: '{"n":12345678901234567890,"m":1.10}' },
    }),
    arrives: { chat: digits, responses: digits, messages: digits, gemini: digits },
    word: /number/,
  },
  {
    name: 'Strict tools',
    asked: {
      chat: { tools: [{ type: 'function', function: { ...tool, strict: true } }] },
      responses: { tools: [{ type: 'function', ...tool, strict: true }] },
      messages: { tools: [{ name: 'look', input_schema: parameters, strict: true }] },
    },
    arrives: { chat: has('"strict":true'), responses: has('"strict":true'), messages: has('"strict":true') },
    word: /strict/,
  },
  {
    name: 'Custom tools',
    asked: {
      chat: { text: 'use the tool', tools: [{ type: 'custom', custom: { name: 'look', description: 'Looks.' } }] },
      responses: { text: 'use the tool', tools: [{ type: 'custom', name: 'look', description: 'Looks.' }] },
    },
    arrives: contains('"look"'),
    comes: ({ raw }) => /custom_tool_call|"type":"custom"/.test(raw) && raw.includes('look'),
    word: /tool/,
  },
  {
    name: 'Namespaces of tools',
    asked: {
      responses: {
        text: 'use the tool',
        tools: [{ type: 'namespace', name: 'mcp', description: 'A server.', tools: [{ type: 'function', strict: false, ...tool }] }],
      },
    },
    arrives: contains('look'),
    comes: ({ raw }) => /"type":"function_call"/.test(raw) && raw.includes('"name":"look"'),
    models: { responses: 'gpt-5-on-responses' },
    word: /namespace|tool/,
  },
  {
    name: 'A tool must be called',
    asked: both(tools, {
      chat: { tool_choice: 'required' },
      responses: { tool_choice: 'required' },
      messages: { tool_choice: { type: 'any' } },
      gencompat: { toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
    }),
    arrives: {
      chat: ({ tool_choice: choice }) => choice === 'required',
      responses: ({ tool_choice: choice }) => choice === 'required',
      messages: ({ tool_choice: choice }) => choice?.type === 'any',
      gemini: ({ toolConfig }) => toolConfig?.functionCallingConfig.mode === 'ANY',
    },
    comes: call,
    word: /tool_choice|toolConfig/,
  },
  {
    name: 'A named tool must be called',
    asked: both(tools, {
      chat: { tool_choice: { type: 'function', function: { name: 'look' } } },
      responses: { tool_choice: { type: 'function', name: 'look' } },
      messages: { tool_choice: { type: 'tool', name: 'look' } },
      gencompat: { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['look'] } } },
    }),
    comes: call,
    word: /tool_choice|toolConfig/,
  },
  {
    name: 'Only some tools allowed',
    asked: {
      chat: {
        text: 'use the tool',
        tools: [{ type: 'function', function: { ...tool, name: 'other' } }, ...chatTools.tools],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'look' } }] } },
      },
      responses: {
        text: 'use the tool',
        tools: [{ ...responsesTools.tools[0], name: 'other' }, ...responsesTools.tools],
        tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'look' }] },
      },
    },
    comes: call,
    word: /tool_choice/,
  },
  {
    name: 'JSON that conforms to a schema',
    asked: {
      chat: { response_format: { type: 'json_schema', json_schema: { name: 'city', schema } } },
      responses: { textFormat: { type: 'json_schema', name: 'city', schema } },
      messages: { output_config: { format: { type: 'json_schema', schema } } },
      gencompat: config({ responseMimeType: 'application/json', responseJsonSchema: schema }),
    },
    arrives: contains('"city"'),
    comes: ({ text }) => text === '{"city":"Paris"}',
    word: /response_format|format|schema/,
  },
  {
    name: 'JSON that conforms to a schema, where the provider has none',
    asked: {
      chat: { response_format: { type: 'json_schema', json_schema: { name: 'city', schema } } },
      responses: { textFormat: { type: 'json_schema', name: 'city', schema } },
      messages: { output_config: { format: { type: 'json_schema', schema } } },
      gencompat: config({ responseMimeType: 'application/json', responseJsonSchema: schema }),
    },
    arrives: { chat: has('city') },
    comes: ({ text }) => text === '{"city":"Paris"}',
    models: { chat: 'deepseek-chat' },
    wires: ['chat'],
    word: /response_format|format|schema/,
  },
  {
    name: 'JSON without a schema',
    asked: {
      chat: { text: 'good day, in JSON', response_format: { type: 'json_object' } },
      responses: { text: 'good day, in JSON', textFormat: { type: 'json_object' } },
      gencompat: config({ responseMimeType: 'application/json' }),
    },
    comes: ({ text }) => text.startsWith('{'),
    word: /response_format|format|JSON/,
  },
  {
    name: 'One word of several (text/x.enum)',
    asked: { gencompat: config({ responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['owl', 'bear'] } }) },
    comes: ({ text }) => text === 'owl' || text === '"owl"',
    arrives: contains('owl'),
    word: /responseMimeType|responseSchema|response_format|enum/,
  },
  {
    name: 'Effort',
    asked: {
      chat: { reasoning_effort: 'high' },
      responses: { reasoning: { effort: 'high' } },
      messages: { max_tokens: 32_000, thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
    },
    arrives: {
      chat: ({ reasoning_effort: effort }) => effort === 'high',
      responses: ({ reasoning: one }) => one?.effort === 'high',
      messages: ({ thinking, output_config: output }) => thinking?.type === 'enabled' || output?.effort === 'high',
      gemini: ({ generationConfig }) => generationConfig?.thinkingConfig,
    },
    models: reasoning,
    word: /effort|thinking/,
  },
  {
    name: 'Budget of thoughts',
    asked: {
      messages: { max_tokens: 16_000, thinking: { type: 'enabled', budget_tokens: 4000 } },
      gencompat: config({ thinkingConfig: { thinkingBudget: 4000, includeThoughts: true } }),
    },
    arrives: {
      chat: ({ reasoning_effort: effort }) => effort,
      responses: ({ reasoning: one }) => one?.effort,
      messages: ({ thinking }) => thinking?.budget_tokens === 4000,
      gemini: ({ generationConfig }) => generationConfig?.thinkingConfig?.thinkingBudget === 4000,
    },
    models: reasoning,
    word: /thinking|budget/,
  },
  {
    name: 'No thinking',
    asked: {
      chat: { reasoning_effort: 'none' },
      responses: { reasoning: { effort: 'none' } },
      messages: { thinking: { type: 'disabled' } },
      gencompat: config({ thinkingConfig: { thinkingBudget: 0 } }),
    },
    arrives: {
      chat: ({ reasoning_effort: effort }) => effort === 'none' || effort === undefined,
      responses: ({ reasoning: one }) => one?.effort === 'none' || one?.effort === 'minimal',
      messages: ({ thinking }) => thinking === undefined || thinking.type === 'disabled',
      gemini: ({ generationConfig }) => generationConfig?.thinkingConfig?.thinkingBudget === 0,
    },
    models: { ...reasoning, responses: 'gpt-6-sol-on-responses' },
    word: /effort|thinking/,
  },
  {
    name: 'Thoughts shown',
    asked: {
      chat: { reasoning_effort: 'high' },
      responses: { reasoning: { effort: 'high', summary: 'auto' } },
      messages: { max_tokens: 8000, thinking: { type: 'enabled', budget_tokens: 4000 } },
      gencompat: config({ thinkingConfig: { includeThoughts: true, thinkingBudget: 4000 } }),
    },
    comes: ({ thought }) => thought.includes('The user wants something.'),
    models: thoughtful,
    word: /thought|thinking|reasoning/,
  },
  {
    name: 'cache_control',
    asked: {
      chat: { turns: [{ role: 'user', content: [{ type: 'text', text: 'good day', cache_control: { type: 'ephemeral' } }] }] },
      responses: { turns: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'good day', cache_control: { type: 'ephemeral' } }] }] },
      messages: { turns: [{ role: 'user', content: [{ type: 'text', text: 'good day', cache_control: { type: 'ephemeral' } }] }] },
    },
    arrives: { messages: has('"cache_control":{"type":"ephemeral"}'), chat: has('"cache_control"') },
    models: { chat: 'glm-5' },
    word: /cache_control/,
  },
  {
    name: 'prompt_cache_key',
    asked: { chat: { prompt_cache_key: 'a-key' }, responses: { prompt_cache_key: 'a-key' } },
    arrives: { chat: has('a-key'), responses: has('a-key') },
    word: /prompt_cache_key/,
  },
  {
    name: 'prompt_cache_retention',
    asked: { chat: { prompt_cache_retention: '24h' }, responses: { prompt_cache_retention: '24h' } },
    arrives: { chat: has('"24h"'), responses: has('"24h"') },
    word: /prompt_cache_retention/,
  },
  {
    name: 'prompt_cache_options',
    asked: { chat: { prompt_cache_options: { mode: 'explicit' } }, responses: { prompt_cache_options: { mode: 'explicit' } } },
    arrives: { chat: has('"explicit"'), responses: has('"explicit"') },
    word: /prompt_cache_options/,
  },
  {
    name: 'moderation',
    asked: { chat: { moderation: { model: 'omni-moderation-latest' } }, responses: { moderation: { model: 'omni-moderation-latest' } } },
    arrives: { chat: has('omni-moderation-latest'), responses: has('omni-moderation-latest') },
    word: /moderation/,
  },
  {
    name: 'cachedContent',
    asked: { gencompat: { cachedContent: 'cachedContents/abc' } },
    arrives: { gemini: has('cachedContents/abc') },
    word: /cachedContent/,
  },
  {
    name: 'Web search by the provider',
    asked: {
      chat: { web_search_options: {} },
      responses: { tools: [{ type: 'web_search' }] },
      messages: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      gencompat: { tools: [{ googleSearch: {} }] },
    },
    arrives: {
      chat: ({ web_search_options: options }) => options,
      responses: (body) => toolsOf(body).some(({ type }) => type?.startsWith('web_search')),
      messages: (body) => toolsOf(body).some(({ type }) => type?.startsWith('web_search')),
      gemini: (body) => toolsOf(body).some((one) => one.googleSearch),
    },
    word: /search/,
  },
  {
    name: 'Code run by the provider',
    asked: {
      responses: { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
      messages: { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] },
      gencompat: { tools: [{ codeExecution: {} }] },
    },
    arrives: { responses: has('code_interpreter'), messages: has('code_execution'), gemini: has('codeExecution') },
    word: /code/i,
  },
  {
    name: 'Search in files by the provider',
    asked: { responses: { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] } },
    arrives: { responses: has('vs_1') },
    word: /file_search/,
  },
  {
    name: 'MCP servers that the provider asks',
    asked: {
      responses: { tools: [{ type: 'mcp', server_label: 'owls', server_url: 'https://owls.example/mcp', require_approval: 'never' }] },
      messages: { mcp_servers: [{ type: 'url', name: 'owls', url: 'https://owls.example/mcp' }] },
    },
    arrives: { responses: has('owls.example'), messages: has('owls.example') },
    word: /mcp/,
  },
  {
    name: 'context_management and container',
    asked: { messages: { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] }, container: 'container_owl' } },
    arrives: { messages: (_, text) => text.includes('clear_tool_uses') && text.includes('container_owl') },
    word: /context_management.*container|container.*context_management/,
  },
  {
    name: 'Images, by URL',
    asked: withParts(
      { type: 'image_url', image_url: { url: `${site}/a.png` } },
      { type: 'input_image', image_url: `${site}/a.png` },
      { type: 'image', source: { type: 'url', url: `${site}/a.png` } },
      { fileData: { mimeType: 'image/png', fileUri: `${site}/a.png` } },
    ),
    arrives: anyOf('/a.png', png),
    comes: answered,
    word: /image/,
  },
  {
    name: 'Images, base64',
    asked: withParts(
      { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
      { type: 'input_image', image_url: `data:image/png;base64,${png}` },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
      { inlineData: { mimeType: 'image/png', data: png } },
    ),
    arrives: contains(png),
    comes: answered,
    word: /image/,
  },
  {
    name: 'PDF, base64, without a name',
    asked: withParts(
      undefined,
      undefined,
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } },
      { inlineData: { mimeType: 'application/pdf', data: pdf } },
    ),
    arrives: contains(pdf),
    comes: answered,
    word: /file|document|pdf/i,
  },
  {
    name: 'PDF, base64, with a name',
    asked: withParts(
      { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } },
      { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` },
      { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: pdf } },
      undefined,
    ),
    arrives: contains(pdf),
    comes: answered,
    word: /file|document|pdf/i,
  },
  {
    name: 'PDF, by URL',
    asked: withParts(
      undefined,
      { type: 'input_file', file_url: `${site}/a.pdf` },
      { type: 'document', source: { type: 'url', url: `${site}/a.pdf` } },
      { fileData: { mimeType: 'application/pdf', fileUri: `${site}/a.pdf` } },
    ),
    arrives: anyOf('/a.pdf', pdf),
    comes: answered,
    word: /file|document|pdf/i,
  },
  {
    name: 'A file by its id at the provider',
    asked: withParts(
      { type: 'file', file: { file_id: 'file-123' } },
      { type: 'input_file', file_id: 'file-123' },
      { type: 'document', source: { type: 'file', file_id: 'file_011' } },
      { fileData: { mimeType: 'application/pdf', fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/owl' } },
    ),
    arrives: { chat: has('file-123'), responses: has('file-123'), messages: has('file_011'), gemini: has('files/owl') },
    word: /file|document/,
  },
  {
    name: 'Text documents',
    asked: withParts(
      undefined,
      undefined,
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'owls fly' } },
      { inlineData: { mimeType: 'text/plain', data: Buffer.from('owls fly').toString('base64') } },
    ),
    arrives: { chat: owls, responses: owls, messages: owls, gemini: owls },
    word: /document|file|text/,
  },
  {
    name: 'Audio',
    asked: withParts(
      { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
      { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
      undefined,
      {
        inlineData: { mimeType: 'audio/wav', data: wav },
      },
    ),
    arrives: contains(wav),
    word: /audio/,
  },
  {
    name: 'Video',
    asked: withParts(undefined, undefined, undefined, { inlineData: { mimeType: 'video/mp4', data: wav } }),
    arrives: contains(wav),
    word: /video|media/,
  },
  {
    name: 'Audio in the answer',
    asked: { chat: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }, gencompat: config({ responseModalities: ['AUDIO'] }) },
    arrives: { chat: has('"alloy"'), gemini: has('"AUDIO"') },
    word: /modalit|audio/i,
  },
  {
    name: 'Images in the answer',
    asked: { gencompat: config({ responseModalities: ['TEXT', 'IMAGE'] }) },
    arrives: { gemini: has('"IMAGE"') },
    word: /responseModalities/,
  },
  {
    name: 'temperature',
    asked: { chat: { temperature: 0.5 }, responses: { temperature: 0.5 }, messages: { temperature: 0.5 }, gencompat: config({ temperature: 0.5 }) },
    arrives: contains('"temperature":0.5'),
    models: older,
    word: /temperature/,
  },
  {
    name: 'temperature and top_p together',
    asked: {
      chat: { temperature: 0.5, top_p: 0.75 },
      responses: { temperature: 0.5, top_p: 0.75 },
      gencompat: config({ temperature: 0.5, topP: 0.75 }),
    },
    arrives: contains('0.75'),
    models: older,
    word: /top_p/,
  },
  {
    name: 'temperature, to models that reason',
    asked: { chat: { temperature: 0.5 }, responses: { temperature: 0.5 }, messages: { temperature: 0.5 }, gencompat: config({ temperature: 0.5 }) },
    arrives: contains('"temperature":0.5'),
    models: { chat: 'gpt-5', responses: 'gpt-5-on-responses', messages: 'claude-opus-5-5', gemini: 'gemini-3-flash-preview' },
    word: /temperature/,
  },
  {
    name: 'top_k',
    asked: { messages: { top_k: 33 }, gencompat: config({ topK: 33 }) },
    arrives: { messages: has('"top_k":33'), gemini: has('"topK":33') },
    models: older,
    word: /top_?k/i,
  },
  {
    name: 'Penalties',
    asked: { chat: { presence_penalty: 0.25 }, gencompat: config({ presencePenalty: 0.25 }) },
    arrives: { chat: has('"presence_penalty":0.25') },
    word: /presence_?penalty/i,
  },
  {
    name: 'Stop sequences',
    asked: {
      chat: { text: 'good day OWL good night', stop: ['OWL'] },
      messages: { text: 'good day OWL good night', stop_sequences: ['OWL'] },
      gencompat: { text: 'good day OWL good night', config: { stopSequences: ['OWL'] } },
    },
    // The Responses API has none: the gateway ends the answer.
    arrives: { chat: has('["OWL"]'), responses: () => true, messages: has('["OWL"]'), gemini: has('["OWL"]') },
    comes: ({ text }, _, wire) => text.includes('good day') && (wire !== 'responses' || !text.includes('OWL')),
    word: /stop/,
  },
  {
    name: 'Maximum of tokens',
    asked: {
      chat: { max_completion_tokens: 77 },
      responses: { max_output_tokens: 77 },
      messages: { max_tokens: 77 },
      gencompat: config({ maxOutputTokens: 77 }),
    },
    arrives: {
      chat: ({ max_tokens: most, max_completion_tokens: newer }) => most === 77 || newer === 77,
      responses: has('"max_output_tokens":77'),
      messages: has('"max_tokens":77'),
      gemini: has('"maxOutputTokens":77'),
    },
    word: /max/,
  },
  {
    name: 'End at the maximum of tokens',
    asked: {
      chat: { text: 'a b c d e f g h i j k l m n o p q r s t u v w x y z', max_completion_tokens: 16 },
      responses: { text: 'a b c d e f g h i j k l m n o p q r s t u v w x y z', max_output_tokens: 16 },
      messages: { text: 'a b c d e f g h i j k l m n o p q r s t u v w x y z', max_tokens: 16 },
      gencompat: { text: 'a b c d e f g h i j k l m n o p q r s t u v w x y z', config: { maxOutputTokens: 16 } },
    },
    comes: ({ raw }) => /"finish_reason":"length"|"max_output_tokens"|"stop_reason":"max_tokens"|"MAX_TOKENS"/.test(raw),
    word: /max/,
  },
  {
    name: 'Several answers',
    asked: { chat: { n: 2 }, gencompat: config({ candidateCount: 2 }) },
    arrives: { chat: ({ n }) => n === 2, gemini: ({ generationConfig }) => generationConfig?.candidateCount === 2 },
    word: /\bn\b|candidate/,
  },
  { name: 'Seed', asked: { chat: { seed: 77 }, gencompat: config({ seed: 77 }) }, arrives: { chat: has('"seed":77'), gemini: has('"seed":77') }, word: /seed/ },
  {
    name: 'Logprobs',
    asked: {
      chat: { logprobs: true, top_logprobs: 3 },
      responses: { top_logprobs: 3, include: ['message.output_text.logprobs'] },
      gencompat: config({ responseLogprobs: true, logprobs: 3 }),
    },
    arrives: { chat: has('"top_logprobs":3'), responses: has('"top_logprobs":3'), gemini: has('"logprobs":3') },
    models: older,
    word: /logprobs/i,
  },
  { name: 'Bias of tokens', asked: { chat: { logit_bias: { '50256': -100 } } }, arrives: { chat: has('50256') }, word: /logit_bias/ },
  {
    name: 'Words that the answer begins with',
    asked: {
      chat: {
        turns: [
          { role: 'user', content: 'good day' },
          { role: 'assistant', content: 'Well,' },
        ],
      },
      responses: {
        turns: [
          { role: 'user', content: 'good day' },
          { role: 'assistant', content: 'Well,' },
        ],
      },
      messages: {
        turns: [
          { role: 'user', content: 'good day' },
          { role: 'assistant', content: 'Well,' },
        ],
      },
      gencompat: {
        turns: [
          { role: 'user', parts: [{ text: 'good day' }] },
          { role: 'model', parts: [{ text: 'Well,' }] },
        ],
      },
    },
    arrives: contains('Well,'),
    models: older,
    word: /assistant|prefill/,
  },
  {
    name: 'Metadata',
    asked: { chat: { store: true, metadata: { owl: 'yes' } }, responses: { metadata: { owl: 'yes' } } },
    // That of a response is kept with it here, and sent to providers that have the field.
    arrives: { chat: kept, responses: has('"owl"'), messages: kept, gemini: kept },
    comes: ({ raw }, face) => face !== 'responses' || raw.includes('"owl":"yes"'),
    word: /metadata|store/,
  },
  {
    name: "The client's own user",
    asked: { chat: { user: 'owl' }, responses: { user: 'owl' }, messages: { metadata: { user_id: 'owl' } } },
    arrives: contains('owl'),
    word: /user|metadata/,
  },
  {
    name: 'Service tier',
    asked: { chat: { service_tier: 'flex' }, responses: { service_tier: 'flex' }, messages: { service_tier: 'standard_only' } },
    arrives: { chat: has('"flex"'), responses: has('"flex"'), messages: has('standard_only') },
    word: /service_tier/,
  },
  {
    name: 'Verbosity',
    asked: { chat: { verbosity: 'low' }, responses: { textVerbosity: 'low' } },
    arrives: { chat: has('"verbosity":"low"'), responses: has('"verbosity":"low"') },
    models: { chat: 'gpt-5', responses: 'gpt-5-on-responses' },
    word: /verbosity/,
  },
  {
    name: 'Safety settings',
    asked: { gencompat: { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] } },
    arrives: { gemini: has('BLOCK_NONE') },
    word: /safetySettings/,
  },
  {
    name: 'Labels',
    asked: { gencompat: { labels: { team: 'owls' } } },
    arrives: { gemini: has('owls') },
    models: { gemini: 'vertex-gemini-3-flash' },
    word: /labels/,
  },
  {
    name: 'mediaResolution and speechConfig',
    asked: {
      gencompat: config({
        mediaResolution: 'MEDIA_RESOLUTION_LOW',
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
      }),
    },
    arrives: { gemini: (_, text) => text.includes('MEDIA_RESOLUTION_LOW') && text.includes('Kore') },
    word: /mediaResolution.*speechConfig|speechConfig.*mediaResolution/,
  },
  { name: 'max_tool_calls', asked: { responses: { max_tool_calls: 3 } }, arrives: { responses: has('"max_tool_calls":3') }, word: /max_tool_calls/ },
  { name: 'prompt', asked: { responses: { prompt: { id: 'pmpt_owl' } } }, arrives: { responses: has('pmpt_owl') }, word: /prompt/ },
  {
    name: 'include',
    asked: { responses: { include: ['file_search_call.results'] } },
    arrives: { responses: has('file_search_call.results') },
    word: /include/,
  },
  { name: 'Truncation', asked: { responses: { truncation: 'auto' } }, arrives: { responses: has('"truncation":"auto"') }, word: /truncation/ },
];

function digits(_: Any, text: string): boolean {
  return text.includes('12345678901234567890') && text.includes('1.10');
}

function owls(_: Any, text: string): boolean {
  return text.includes('owls fly') || text.includes(Buffer.from('owls fly').toString('base64'));
}

function kept(_: Any, text: string, face: Face): boolean {
  return face === 'responses' || text.includes('"owl"');
}
