/** Calls with fields drawn at random, each as a client of its interface may send it: what is drawn is valid there for some model of the interface's own vendor. */
import type { Face } from '../support/all-faces.ts';
import { modelNames } from '../support/fakes/vendors/index.ts';
import { chanceOf } from '../support/fakes/journals.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- bodies of four dialects
type Any = any;

export interface DrawnCall {
  readonly seed: number;
  readonly face: Face;
  readonly model: string;
  readonly stream: boolean;
  /** With `x-dragoman-strict: true`. */
  readonly strict: boolean;
  readonly path: string;
  readonly body: Any;
}

type Chance = () => number;

export function drawnCall(seed: number): DrawnCall {
  const chance = chanceOf(Math.imul(seed, 0x9e3779b1)); // neighbours differ from the first number on
  const face = one(chance, ['chat', 'responses', 'messages', 'gencompat'] as const);
  const model = one(chance, modelNames);
  const stream = chance() < 0.5;
  const body = draws[face](chance, model);
  const call = { seed, face, model, stream, strict: chance() < 0.1 };
  switch (face) {
    case 'chat':
      return { ...call, path: '/server/chatcompat/v1/chat/completions', body: { ...body, stream } };
    case 'responses':
      return { ...call, path: '/server/chatcompat/v1/responses', body: { ...body, stream } };
    case 'messages':
      return { ...call, path: '/server/messages/v1/messages', body: { ...body, stream } };
    case 'gencompat':
      return {
        ...call,
        path: `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        body,
      };
    default:
      return face satisfies never;
  }
}

const one = <Item>(chance: Chance, items: readonly Item[]): Item => items[Math.floor(chance() * items.length)]!;
/** With this probability these members. */
const maybe = <Members extends object>(chance: Chance, probability: number, members: () => Members): Partial<Members> =>
  chance() < probability ? members() : {};

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pdf = 'JVBERi0xLjQKJcOkw7zDtsOfCg==';
const texts = ['hello', 'use the tool', 'use the tool twice', 'Answer in JSON.', 'tell me a story'] as const;

/** Schemas of parameters: plain ones, and those that some vendor wants otherwise. */
const parameters = [
  { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
  { type: 'object', properties: { days: { type: 'integer', minimum: 1, maximum: 10 }, place: { type: ['string', 'null'], minLength: 1 } }, required: ['days'] },
  { type: 'object', properties: { all: { type: 'array', items: { type: 'object', properties: { a: { type: 'number' } } }, minItems: 2 } } },
  { type: 'object', properties: { mood: { type: 'string', enum: ['good', 'bad'] } } },
] as const;
const bare = { type: 'object' };
/** Schemas of answers. */
const answers = [
  ...parameters,
  {
    type: 'object',
    properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
    $defs: { node: { type: 'object', properties: { name: { type: 'string' } } } },
  },
] as const;
const closed = {
  type: 'object',
  properties: { city: { type: 'string' }, note: { type: ['string', 'null'] } },
  required: ['city', 'note'],
  additionalProperties: false,
};

interface DrawnTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
  readonly strict?: boolean;
}

function tools(chance: Chance, names: readonly string[], schemas: readonly object[], strict?: object): readonly DrawnTool[] {
  if (chance() < 0.4) return [];
  const chosen = chance() < 0.7 ? [one(chance, names)] : names.slice(0, 2);
  return chosen.map((name) => ({
    name,
    description: 'Looks at something.',
    ...(strict && chance() < 0.15 ? { parameters: strict, strict: true } : { parameters: one(chance, schemas) }),
  }));
}

/** A conversation in no dialect: what was said before, and calls with their results. */
type Step =
  | { readonly type: 'user' | 'assistant' | 'system'; readonly text: string }
  | { readonly type: 'call'; readonly ids: readonly string[]; readonly text?: string; readonly results: readonly string[] };

const ids = ['call_abcdefghijklmnopqrstuvwx', 'toolu_01A09q90qw90lq917835lq9', 'a1b2c3d4e', 'functions.look:0', 'call_1'] as const;
const results = ['blue', '{"degrees": 12345678901234567890, "price": 1.10}', '{"$ref": "#/$defs/A"}', ''] as const;

function conversation(chance: Chance, midSystem: boolean): readonly Step[] {
  const steps: Step[] = [];
  if (chance() < 0.4) steps.push({ type: 'user', text: 'good day' }, { type: 'assistant', text: 'good day to you' });
  if (chance() < 0.35) {
    const count = chance() < 0.3 ? 2 : 1;
    const id = one(chance, ids);
    steps.push(
      { type: 'user', text: 'what colour is it' },
      {
        type: 'call',
        ids: [id, `${id.slice(0, 8)}9`].slice(0, count),
        ...(chance() < 0.3 ? { text: 'I look.' } : {}),
        results: [one(chance, results), 'red'].slice(0, count),
      },
    );
    if (chance() < 0.4) return steps;
    steps.push({ type: 'assistant', text: 'it has a colour' });
  }
  steps.push({ type: 'user', text: one(chance, texts) });
  if (midSystem && steps.length > 1 && chance() < 0.2) steps.splice(-1, 0, { type: 'system', text: 'be brief' });
  return steps;
}

const system = (chance: Chance): string | undefined => (chance() < 0.5 ? 'You are an agent.' : undefined);
const temperature = (chance: Chance, most: number) => one(chance, [0, 0.7, 1, most]);

// ——— the four interfaces ———

function chat(chance: Chance, model: string): Any {
  const declared = tools(chance, ['look', 'web-search_2'], [...parameters, bare], closed);
  const steps = conversation(chance, true);
  const front = system(chance);
  const media = chance();
  const json = chance();
  const messages = steps.flatMap((step): Any[] => {
    if (step.type !== 'call') return [{ role: step.type === 'system' ? one(chance, ['system', 'developer']) : step.type, content: step.text }];
    const calls = step.ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{"at":"1.10"}' } }));
    return [
      { role: 'assistant', content: step.text ?? null, tool_calls: calls },
      ...step.ids.map((id, at) => ({ role: 'tool', tool_call_id: id, content: step.results[at] })),
    ];
  });
  if (media < 0.08) withPart(messages, { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } });
  else if (media < 0.12) withPart(messages, { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } });
  return {
    model,
    messages: [...(front === undefined ? [] : [{ role: one(chance, ['system', 'system', 'developer']), content: front }]), ...messages],
    ...(declared.length > 0
      ? {
          tools: declared.map((tool) => ({ type: 'function', function: tool })),
          ...maybe(chance, 0.4, () => ({
            tool_choice: one(chance, [
              ...(['auto', 'none', 'required'] as const),
              { type: 'function', function: { name: declared[0]!.name } },
              { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: declared[0]!.name } }] } },
            ]),
          })),
          ...maybe(chance, 0.2, () => ({ parallel_tool_calls: chance() < 0.5 })),
        }
      : {}),
    ...(json < 0.1 ? { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: one(chance, answers) } } } : {}),
    ...(json > 0.95 ? { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: closed, strict: true } } } : {}),
    ...(json > 0.9 && json < 0.95 && JSON.stringify(messages).includes('JSON') ? { response_format: { type: 'json_object' } } : {}),
    ...maybe(chance, 0.3, () => ({ temperature: temperature(chance, 1.5) })),
    ...maybe(chance, 0.25, () => ({ top_p: one(chance, [0.1, 0.95, 1]) })),
    ...maybe(chance, 0.3, () => ({ [one(chance, ['max_tokens', 'max_completion_tokens'])]: one(chance, [1, 5, 32, 2048, 32_000]) })),
    ...maybe(chance, 0.08, () => ({ [one(chance, ['presence_penalty', 'frequency_penalty'])]: 0.5 })),
    ...maybe(chance, 0.12, () => ({ stop: one(chance, ['END', ['\n'], ['a', 'b', 'c', 'd']]) })),
    ...maybe(chance, 0.04, () => ({ n: 2 })),
    ...maybe(chance, 0.08, () => ({ seed: 7 })),
    ...maybe(chance, 0.03, () => ({ logprobs: true, top_logprobs: 2 })),
    ...maybe(chance, 0.03, () => ({ logit_bias: { '50256': -100 } })),
    ...maybe(chance, 0.3, () => ({ reasoning_effort: one(chance, ['none', 'minimal', 'low', 'medium', 'high', 'xhigh']) })),
    ...maybe(chance, 0.1, () => ({ user: 'somebody' })),
    ...maybe(chance, 0.06, () => ({ store: true, metadata: { a: 'b' } })),
    ...maybe(chance, 0.08, () => ({ prompt_cache_key: 'a key' })),
    ...maybe(chance, 0.05, () => ({ service_tier: 'auto' })),
    ...maybe(chance, 0.05, () => ({ verbosity: 'low' })),
  };
}

function responses(chance: Chance, model: string): Any {
  const declared = tools(chance, ['look', 'web-search_2'], [...parameters, bare], closed);
  const front = system(chance);
  const media = chance();
  const json = chance();
  const input = conversation(chance, true).flatMap((step): Any[] => {
    if (step.type === 'call')
      return [
        ...(step.text === undefined ? [] : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: step.text }] }]),
        ...step.ids.map((id) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{"at":"1.10"}' })),
        ...step.ids.map((id, at) => ({ type: 'function_call_output', call_id: id, output: step.results[at] })),
      ];
    const type = step.type === 'assistant' ? 'output_text' : 'input_text';
    return [{ type: 'message', role: step.type === 'system' ? 'developer' : step.type, content: [{ type, text: step.text }] }];
  });
  const last = input.findLast(({ role }) => role === 'user');
  if (media < 0.08) last.content.push({ type: 'input_image', image_url: `data:image/png;base64,${png}` });
  else if (media < 0.12) last.content.push({ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` });
  const search = chance() < 0.06 ? [{ type: 'web_search' }] : [];
  const custom =
    chance() < 0.06
      ? [{ type: 'custom', name: 'apply_patch', description: 'Patches.', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } }]
      : [];
  const all = [...declared.map((tool) => ({ type: 'function', strict: false, ...tool })), ...search, ...custom];
  const isJson = JSON.stringify(input).includes('JSON');
  return {
    model,
    input,
    store: false,
    ...(front === undefined ? {} : { instructions: front }),
    ...(all.length > 0 ? { tools: all } : {}),
    ...(all.length > 0
      ? maybe(chance, 0.4, () => ({
          tool_choice: one(chance, ['auto', 'auto', 'none', ...(declared.length > 0 ? ['required', { type: 'function', name: declared[0]!.name }] : [])]),
        }))
      : {}),
    ...maybe(chance, 0.3, () => ({ parallel_tool_calls: chance() < 0.5 })),
    ...(json < 0.1 ? { text: { format: { type: 'json_schema', name: 'answer', schema: one(chance, answers), strict: false } } } : {}),
    ...(json > 0.95 ? { text: { format: { type: 'json_schema', name: 'answer', schema: closed, strict: true } } } : {}),
    ...(json > 0.9 && json < 0.95 && isJson ? { text: { format: { type: 'json_object' } } } : {}),
    ...maybe(chance, 0.2, () => ({ temperature: temperature(chance, 1.5) })),
    ...maybe(chance, 0.15, () => ({ top_p: one(chance, [0.1, 0.95]) })),
    ...maybe(chance, 0.3, () => ({ max_output_tokens: one(chance, [16, 32, 2048, 32_000]) })),
    ...maybe(chance, 0.5, () => ({
      reasoning: { effort: one(chance, ['none', 'minimal', 'low', 'medium', 'high', 'xhigh']), ...(chance() < 0.5 ? { summary: 'auto' } : {}) },
    })),
    ...maybe(chance, 0.5, () => ({ include: ['reasoning.encrypted_content'] })),
    ...maybe(chance, 0.3, () => ({ prompt_cache_key: 'a key' })),
    ...maybe(chance, 0.1, () => ({ metadata: { a: 'b' } })),
    ...maybe(chance, 0.1, () => ({ user: 'somebody' })),
    ...maybe(chance, 0.05, () => ({ service_tier: 'auto' })),
    ...maybe(chance, 0.05, () => ({ truncation: 'disabled' })),
  };
}

function messages(chance: Chance, model: string): Any {
  const long = `mcp__${'server'.repeat(12)}__look`;
  const declared = tools(chance, ['look', long], parameters, { ...closed, required: ['city'] });
  const front = system(chance);
  const media = chance();
  const cached = () => maybe(chance, 0.3, () => ({ cache_control: { type: 'ephemeral' } }));
  const all = conversation(chance, false).flatMap((step): Any[] => {
    if (step.type !== 'call') return [{ role: step.type, content: step.type === 'user' ? [{ type: 'text', text: step.text, ...cached() }] : step.text }];
    const fit = step.ids.map((id) => id.replaceAll(/[^\w-]/g, '_'));
    return [
      {
        role: 'assistant',
        content: [
          ...(step.text === undefined ? [] : [{ type: 'text', text: step.text }]),
          ...fit.map((id) => ({ type: 'tool_use', id, name: 'look', input: { at: '1.10' } })),
        ],
      },
      {
        role: 'user',
        content: fit.map((id, at) => ({
          type: 'tool_result',
          tool_use_id: id,
          ...maybe(chance, 0.9, () => ({ content: step.results[at] })),
          ...maybe(chance, 0.1, () => ({ is_error: true })),
        })),
      },
    ];
  });
  const last = all.findLast(({ role, content }) => role === 'user' && content[0].type === 'text');
  if (media < 0.08) last?.content.push({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } });
  else if (media < 0.14) last?.content.push({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } });
  else if (media < 0.17) last?.content.push({ type: 'search_result', source: 'https://a.example', title: 'A', content: [{ type: 'text', text: 'found' }] });
  const thinking = chance();
  const most = one(chance, [32, 1000, 2048, 32_000]);
  const isThinking = thinking < 0.2 && most > 1024;
  return {
    model,
    max_tokens: most,
    messages: all,
    ...(front === undefined ? {} : { system: one<Any>(chance, [front, [{ type: 'text', text: front, cache_control: { type: 'ephemeral' } }]]) }),
    ...(declared.length > 0
      ? {
          tools: declared.map(({ parameters: input_schema, ...tool }) => ({
            ...tool,
            input_schema,
            ...maybe(chance, 0.1, () => ({ cache_control: { type: 'ephemeral' } })),
          })),
          ...(isThinking
            ? {}
            : maybe(chance, 0.3, () => ({
                tool_choice: one(chance, [
                  { type: 'auto' },
                  { type: 'any' },
                  { type: 'tool', name: declared[0]!.name },
                  { type: 'none' },
                  { type: 'auto', disable_parallel_tool_use: true },
                ]),
              }))),
        }
      : {}),
    ...(isThinking ? { thinking: { type: 'enabled', budget_tokens: most > 10_000 ? one(chance, [1024, 4000, 10_000]) : 1024 } } : {}),
    ...(thinking > 0.8 ? { thinking: { type: thinking > 0.9 ? 'adaptive' : 'disabled' } } : {}),
    ...maybe(chance, 0.15, () => ({
      output_config: one<Any>(chance, [{ effort: one(chance, ['low', 'high', 'max']) }, { format: { type: 'json_schema', schema: closed } }]),
    })),
    ...(isThinking ? {} : one<Any>(chance, [{}, {}, { temperature: temperature(chance, 1) }, { top_p: 0.9 }, { top_k: 40 }])),
    ...maybe(chance, 0.1, () => ({ stop_sequences: ['END'] })),
    ...maybe(chance, 0.3, () => ({ metadata: { user_id: 'user_1' } })),
    ...maybe(chance, 0.05, () => ({ service_tier: 'auto' })),
  };
}

function gencompat(chance: Chance): Any {
  const declared = tools(chance, ['look', 'mcp.server:look'], [...parameters, bare]);
  const front = system(chance);
  const media = chance();
  const thinking = chance();
  const contents = conversation(chance, false).flatMap((step): Any[] => {
    if (step.type !== 'call') return [{ role: step.type === 'assistant' ? 'model' : 'user', parts: [{ text: step.text }] }];
    return [
      {
        role: 'model',
        parts: [...(step.text === undefined ? [] : [{ text: step.text }]), ...step.ids.map(() => ({ functionCall: { name: 'look', args: { at: '1.10' } } }))],
      },
      { role: 'user', parts: step.ids.map((_, at) => ({ functionResponse: { name: 'look', response: { output: step.results[at] } } })) },
    ];
  });
  const last = contents.findLast(({ role, parts }) => role === 'user' && parts[0].text);
  if (media < 0.08) last.parts.push({ inlineData: { mimeType: 'image/png', data: png } });
  else if (media < 0.14) last.parts.push({ inlineData: { mimeType: 'application/pdf', data: pdf } });
  const json = chance();
  return {
    contents,
    ...(front === undefined ? {} : { systemInstruction: { parts: [{ text: front }] } }),
    ...(declared.length > 0
      ? {
          tools: [
            { functionDeclarations: declared.map(({ parameters: parametersJsonSchema, name, description }) => ({ name, description, parametersJsonSchema })) },
          ],
          ...maybe(chance, 0.4, () => ({
            toolConfig: {
              functionCallingConfig: one<Any>(chance, [
                { mode: 'AUTO' },
                { mode: 'ANY' },
                { mode: 'NONE' },
                { mode: 'ANY', allowedFunctionNames: [declared[0]!.name] },
              ]),
            },
          })),
        }
      : chance() < 0.05
        ? { tools: [{ googleSearch: {} }] }
        : {}),
    generationConfig: {
      ...maybe(chance, 0.5, () => ({ temperature: temperature(chance, 1.5) })),
      ...maybe(chance, 0.5, () => ({ topP: 0.95 })),
      ...maybe(chance, 0.4, () => ({ topK: 64 })),
      ...maybe(chance, 0.3, () => ({ maxOutputTokens: one(chance, [5, 32, 2048, 32_000]) })),
      ...maybe(chance, 0.1, () => ({ stopSequences: one(chance, [['END'], ['a', 'b', 'c', 'd', 'e']]) })),
      ...maybe(chance, 0.04, () => ({ candidateCount: 2 })),
      ...maybe(chance, 0.06, () => ({ seed: 7 })),
      ...maybe(chance, 0.04, () => ({ presencePenalty: 0.5 })),
      ...(json < 0.1 ? { responseMimeType: 'application/json', responseJsonSchema: one(chance, answers) } : {}),
      ...(json > 0.95 ? { responseMimeType: 'application/json' } : {}),
      ...(json > 0.9 && json < 0.95
        ? { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { city: { type: 'STRING' } } } }
        : {}),
      ...(thinking < 0.3 ? { thinkingConfig: { includeThoughts: true, thinkingBudget: one(chance, [0, -1, 128, 4000, 24_576]) } } : {}),
      ...(thinking > 0.8 ? { thinkingConfig: { includeThoughts: true, thinkingLevel: one(chance, ['LOW', 'HIGH', 'MINIMAL']) } } : {}),
    },
    ...maybe(chance, 0.1, () => ({ safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] })),
  };
}

const draws: Readonly<Record<Face, (chance: Chance, model: string) => Any>> = { chat, responses, messages, gencompat };

function withPart(all: readonly Any[], part: object): void {
  const last = all.findLast(({ role }) => role === 'user');
  last.content = [{ type: 'text', text: last.content }, part];
}
