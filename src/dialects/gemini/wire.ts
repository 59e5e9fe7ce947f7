import { Type, type Static } from 'typebox';
import { carrying } from '../shared/read-fields.ts';
import type { Json } from '#core/json';
import { anyObject, anything, optional } from '../shared/schemas.ts';

/** The content generation wire, as far as it is decoded. https://ai.google.dev/api/generate-content */
export const dialect = 'gemini';

/** The note of a refused prompt, with what the provider says of it: there is no candidate then. */
export const blockedPrompt = '.promptFeedback';

/** The fields that the dialect carries for itself, as the member `extra` to be spread. */
export const carriedAs = carrying(dialect);

const whole = (minimum: number, maximum: number, description: string) => Type.Integer({ minimum, maximum, description });
const mostParts = 100_000;

const Blob = Type.Object({ mimeType: Type.String({ minLength: 1, maxLength: 200 }), data: Type.String({ description: 'Base64.' }) });
const FileData = Type.Object({ mimeType: optional(Type.String({ maxLength: 200 })), fileUri: Type.String({ minLength: 1 }) });
const name = Type.String({ minLength: 1, maxLength: 256 });

/** A part has exactly one of these content members. */
const Part = Type.Object(
  {
    text: optional(Type.String()),
    inlineData: optional(Blob),
    fileData: optional(FileData),
    functionCall: optional(Type.Object({ id: optional(Type.String()), name, args: optional(anyObject('The arguments.')) })),
    functionResponse: optional(
      Type.Object({
        id: optional(Type.String()),
        name,
        response: optional(anyObject('What the function returned.')),
        parts: optional(Type.Array(Type.Object({ inlineData: optional(Blob), fileData: optional(FileData) }), { maxItems: 1000 })),
      }),
    ),
    executableCode: optional(anyObject()),
    codeExecutionResult: optional(anyObject()),
    thought: optional(Type.Boolean({ description: 'The text is a thought of the model.' })),
    thoughtSignature: optional(Type.String()),
  },
  { description: 'One of text, inlineData, fileData, functionCall, functionResponse, executableCode, codeExecutionResult.' },
);

const Content = Type.Object({
  role: optional(Type.String({ description: '`user`, `model` (or `assistant`), or `system`, which joins the system instruction.' })),
  parts: Type.Array(Part, { minItems: 1, maxItems: mostParts }),
});

const FunctionDeclaration = Type.Object({
  name,
  description: optional(Type.String()),
  parameters: optional(anyObject('An object schema, with types in capitals.')),
  parametersJsonSchema: optional(anyObject('The same as a JSON Schema.')),
});

const Tool = Type.Object(
  { functionDeclarations: optional(Type.Array(FunctionDeclaration, { maxItems: 1024 })) },
  { description: 'Functions, or a tool of the provider: googleSearch, codeExecution, urlContext…' },
);

const responseFormat = Type.Unsafe<Json>(
  Type.Unknown({ description: 'The newer form of these three: `{"text": {"mimeType": "APPLICATION_JSON", "schema": {…}}}`, or a list of one.' }),
);

export const GenerationConfig = Type.Object({
  temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
  topP: optional(Type.Number({ minimum: 0, maximum: 1 })),
  topK: optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
  candidateCount: optional(whole(1, 128, 'How many answers to make.')),
  maxOutputTokens: optional(whole(1, 2 ** 31 - 1, 'Maximum tokens generated, thoughts included.')),
  stopSequences: optional(Type.Array(Type.String(), { maxItems: 1000 })),
  responseMimeType: optional(Type.String({ maxLength: 200, description: '`text/plain` or `application/json`.' })),
  responseSchema: optional(anyObject('The answer conforms to it, with responseMimeType application/json.')),
  responseJsonSchema: optional(anyObject('The same as a JSON Schema.')),
  responseFormat: optional(responseFormat),
  seed: optional(Type.Integer({ minimum: -(2 ** 31), maximum: 2 ** 31 - 1 })),
  presencePenalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  frequencyPenalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  responseLogprobs: optional(Type.Boolean()),
  logprobs: optional(whole(0, 20, 'Alternatives a token.')),
  thinkingConfig: optional(
    Type.Object({
      includeThoughts: optional(Type.Boolean()),
      thinkingBudget: optional(whole(-1, 2 ** 31 - 1, 'Tokens for thinking; 0: none, -1: as the model likes.')),
      thinkingLevel: optional(Type.String({ description: '`MINIMAL`, `LOW`, `MEDIUM` or `HIGH`.' })),
    }),
  ),
});

const conversation = {
  contents: Type.Array(Content, { minItems: 1, maxItems: 100_000, description: 'The conversation so far.' }),
  systemInstruction: optional(Content),
  tools: optional(Type.Array(Tool, { maxItems: 1024 })),
  toolConfig: optional(
    Type.Object({
      functionCallingConfig: optional(
        Type.Object({
          mode: optional(Type.String({ description: '`AUTO`, `ANY`, `NONE` or `VALIDATED`.' })),
          allowedFunctionNames: optional(Type.Array(name, { maxItems: 1024 })),
        }),
      ),
    }),
  ),
  safetySettings: optional(Type.Array(Type.Object({ category: Type.String(), threshold: Type.String() }), { maxItems: 100 })),
};

export type GenerateRequest = Static<typeof GenerateRequest>;
export const GenerateRequest = Type.Object(
  { ...conversation, generationConfig: optional(GenerationConfig), serviceTier: optional(anything) },
  { description: 'Content generation request. Members may be spelled in snake_case too; other members are passed on to providers that speak this interface.' },
);

export type CountRequest = Static<typeof CountRequest>;
export const CountRequest = Type.Object(
  {
    contents: optional(Type.Array(Content, { maxItems: 100_000 })),
    systemInstruction: conversation.systemInstruction,
    tools: conversation.tools,
    generationConfig: optional(GenerationConfig),
    generateContentRequest: optional(GenerateRequest),
  },
  { description: 'A conversation whose tokens are counted: contents, or a whole generateContentRequest.' },
);

export type WireContent = Static<typeof Content>;
export type WirePart = Static<typeof Part>;
export type WireTool = Static<typeof Tool>;
export type WireConfig = Static<typeof GenerationConfig>;
export type WireFunction = Static<typeof FunctionDeclaration>;

export const TokenCount = Type.Object({ totalTokens: Type.Integer({ description: 'Tokens of the prompt, tools and system instruction included.' }) });

const Candidate = Type.Object({
  content: Type.Object({ role: Type.Literal('model'), parts: Type.Array(Part) }),
  finishReason: Type.String({ description: '`STOP`, `MAX_TOKENS`, `SAFETY`…' }),
  index: Type.Integer(),
  safetyRatings: Type.Array(anything),
});

/** The response schema of the OpenAPI document; a response may have further members that its provider sent. */
export const GenerateResponse = Type.Object({
  candidates: Type.Array(Candidate),
  usageMetadata: Type.Object({
    promptTokenCount: Type.Integer(),
    candidatesTokenCount: Type.Integer({ description: 'Tokens generated, without thoughts.' }),
    thoughtsTokenCount: Type.Optional(Type.Integer()),
    cachedContentTokenCount: Type.Optional(Type.Integer()),
    totalTokenCount: Type.Integer(),
  }),
  modelVersion: Type.String({ description: 'The model that answered.' }),
  responseId: Type.String(),
});

/** A piece of a streamed response: why a candidate ended and what was used stand where they are known, or an error ends the stream. */
export const GenerateChunk = Type.Object({
  candidates: Type.Optional(Type.Array(Type.Partial(Candidate))),
  usageMetadata: Type.Optional(Type.Partial(GenerateResponse.properties.usageMetadata)),
  modelVersion: Type.Optional(GenerateResponse.properties.modelVersion),
  responseId: Type.Optional(GenerateResponse.properties.responseId),
  error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String(), status: Type.String() })),
});

/** Any JSON object from an upstream: no member is guaranteed. */
export type Loose = Readonly<Record<string, unknown>>;
