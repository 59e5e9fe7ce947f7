const object = { type: 'object' } as const;
const text = { type: 'string' } as const;
const between = (minimum: number, maximum: number) => ({ type: 'number', minimum, maximum }) as const;

const part = { ...object, required: ['type'], properties: { type: text, text } } as const;

const message = {
  ...object,
  required: ['role'],
  properties: {
    role: { ...text, enum: ['system', 'developer', 'user', 'assistant', 'tool'] },
    content: { anyOf: [text, { type: 'null' }, { type: 'array', items: part }] },
    name: text,
    tool_call_id: text,
  },
} as const;

const tool = {
  ...object,
  required: ['type', 'function'],
  properties: { type: { const: 'function' }, function: { ...object, required: ['name'], properties: { name: text, description: text, parameters: object } } },
} as const;

/** JSON Schema of a chat completion request, as far as a gateway must look. */
export const chatBody = {
  ...object,
  required: ['model', 'messages'],
  properties: {
    model: { ...text, minLength: 1 },
    messages: { type: 'array', minItems: 1, items: message },
    temperature: between(0, 2),
    top_p: between(0, 1),
    max_tokens: { type: 'integer', minimum: 1 },
    stream: { type: 'boolean' },
    frequency_penalty: between(-2, 2),
    presence_penalty: between(-2, 2),
    tools: { type: 'array', items: tool },
    tool_choice: { anyOf: [text, object] },
  },
} as const;

/** The same of a request for a response. */
export const responseBody = {
  ...object,
  required: ['model', 'input'],
  properties: {
    model: { ...text, minLength: 1 },
    input: { anyOf: [text, { type: 'array', minItems: 1, items: object }] },
    instructions: text,
    temperature: between(0, 2),
    top_p: between(0, 1),
    max_output_tokens: { type: 'integer', minimum: 1 },
    store: { type: 'boolean' },
    stream: { type: 'boolean' },
    tools: { type: 'array', items: object },
    tool_choice: { anyOf: [text, object] },
  },
} as const;

/** The same of a request for a message. */
export const messageBody = {
  ...object,
  required: ['model', 'max_tokens', 'messages'],
  properties: {
    model: { ...text, minLength: 1 },
    max_tokens: { type: 'integer', minimum: 1 },
    system: { anyOf: [text, { type: 'array', items: part }] },
    messages: {
      type: 'array',
      minItems: 1,
      items: {
        ...object,
        required: ['role', 'content'],
        properties: { role: { ...text, enum: ['user', 'assistant'] }, content: { anyOf: [text, { type: 'array', items: part }] } },
      },
    },
    temperature: between(0, 1),
    top_p: between(0, 1),
    stream: { type: 'boolean' },
    tools: { type: 'array', items: object },
    tool_choice: object,
  },
} as const;

const turn = { ...object, required: ['parts'], properties: { role: text, parts: { type: 'array', items: { ...object, properties: { text } } } } } as const;

/** The same of a Gemini request for content. */
export const contentBody = {
  ...object,
  required: ['contents'],
  properties: {
    contents: { type: 'array', minItems: 1, items: turn },
    systemInstruction: turn,
    generationConfig: { ...object, properties: { temperature: between(0, 2), topP: between(0, 1), maxOutputTokens: { type: 'integer', minimum: 1 } } },
    tools: { type: 'array', items: object },
  },
} as const;
