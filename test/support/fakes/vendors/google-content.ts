/** What the Gemini API refuses. */
import { others } from './chat-rules.ts';
import { first, has, list, rule, type Any, type Refusal, type Rule, words } from './vendor.ts';

/** What every thought signature of ours begins with. */
export const mark = 'CiQBgemini-signed-';
/** Those that Google says to send where there is none. https://ai.google.dev/gemini-api/docs/thought-signatures#faqs */
const dummies: ReadonlySet<unknown> = new Set(['context_engineering_is_the_way_to_go', 'skip_thought_signature_validator']);

export const isGemini3 = (model: string): boolean => model.startsWith('gemini-3');
const isPro25 = (model: string): boolean => model.startsWith('gemini-2.5-pro');

// https://ai.google.dev/api/generate-content
const fields = [
  'contents',
  'tools',
  'toolConfig',
  'safetySettings',
  'systemInstruction',
  'generationConfig',
  'cachedContent',
  'model',
  'labels',
  'serviceTier',
  'store',
];
const configFields = words(`
  stopSequences responseMimeType responseSchema _responseJsonSchema responseJsonSchema responseModalities candidateCount maxOutputTokens
  temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs enableEnhancedCivicAnswers speechConfig
  thinkingConfig imageConfig mediaResolution responseFormat
`);
const partFields = words(`
  thought thoughtSignature partMetadata mediaResolution text inlineData functionCall functionResponse fileData executableCode
  codeExecutionResult videoMetadata toolCall toolResponse
`);
const schemaFields = words(`
  type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern
  example anyOf propertyOrdering default items minimum maximum
`);

const reference = 'https://ai.google.dev/api/generate-content';
const turns = ({ contents }: Any): Any[] => list(contents);
const functionsOf = ({ tools }: Any): Any[] => list(tools).flatMap(({ functionDeclarations }) => list(functionDeclarations));
const calls = (turn: Any): Any[] => list(turn?.parts).filter(({ functionCall }) => functionCall);
const answers = (turn: Any): Any[] => list(turn?.parts).filter(({ functionResponse }) => functionResponse);
const unknown = (name: string, at: string): Refusal => {
  const message = `Invalid JSON payload received. Unknown name "${name}"${at === '' ? '' : ` at '${at}'`}: Cannot find field.`;
  return { message, more: { details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field: at, description: message }] }] } };
};

export const contentRules: readonly Rule[] = [
  rule('unknown fields', reference, ({ body }) => {
    const [name] = others(body, fields);
    if (name !== undefined) return unknown(name, '');
    const [inConfig] = others(body.generationConfig, configFields);
    if (inConfig !== undefined) return unknown(inConfig, 'generation_config');
    return first<Any, Refusal>(turns(body), ({ parts }, at) =>
      first<Any, Refusal>(parts, (part, place) => {
        const [stranger] = others(part, partFields);
        return stranger !== undefined && unknown(stranger, `contents[${at}].parts[${place}]`);
      }),
    );
  }),
  rule('schemas in its own language have no other words', 'https://ai.google.dev/api/caching#Schema', ({ body }) => {
    const declared = functionsOf(body);
    return (
      first<Any, Refusal>(declared, ({ parameters }, at) => strangeSchema(parameters, `tools[0].function_declarations[${at}].parameters`)) ??
      strangeSchema(body.generationConfig?.responseSchema, 'generation_config.response_schema')
    );
  }),
  rule(
    'there are contents',
    'BerriAI/litellm#13769',
    ({ body }) => turns(body).length === 0 && '* GenerateContentRequest.contents: contents is not specified\n',
  ),
  rule(
    'roles',
    reference,
    ({ body }) => turns(body).some(({ role }) => !['user', 'model', 'function', undefined].includes(role)) && 'Please use a valid role: user, model.',
  ),
  rule('there are parts', 'router-for-me/CLIProxyAPI#2178', ({ body }) =>
    first<Any, string>(turns(body), ({ parts }, at) => {
      if (list(parts).length === 0) return `* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.\n`;
      const empty = list(parts).findIndex((part) =>
        [
          'text',
          'inlineData',
          'functionCall',
          'functionResponse',
          'fileData',
          'executableCode',
          'codeExecutionResult',
          'thoughtSignature',
          'toolCall',
          'toolResponse',
        ].every((name) => !has(part[name])),
      );
      return empty >= 0 && `* GenerateContentRequest.contents[${at}].parts[${empty}].data: required oneof field 'data' must have one initialized field\n`;
    }),
  ),
  rule('calls follow users, responses follow calls', 'BerriAI/litellm#32536', ({ body }) => outOfTurn(turns(body))),
  rule('names of functions', reference, ({ body }) => {
    const unfit = (name: unknown) => !/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/.test(String(name));
    const says =
      'Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.';
    return (
      first<Any, string>(
        functionsOf(body),
        ({ name }, at) => unfit(name) && `* GenerateContentRequest.tools[0].function_declarations[${at}].name: ${says}\n`,
      ) ??
      first<Any, string>(turns(body), ({ parts }, at) =>
        first<Any, string>(parts, ({ functionCall, functionResponse }, place) => {
          const name = functionCall?.name ?? functionResponse?.name;
          return (functionCall ?? functionResponse) && unfit(name) && `* GenerateContentRequest.contents[${at}].parts[${place}].function_call.name: ${says}\n`;
        }),
      )
    );
  }),
  rule('a result is an object', reference, ({ body }) =>
    first<Any, string>(turns(body), ({ parts }, at) =>
      first<Any, string>(parts, ({ functionCall, functionResponse }, place) => {
        const [value, name] = functionCall ? [functionCall.args ?? {}, 'function_call.args'] : [functionResponse?.response ?? {}, 'function_response.response'];
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
        return !isObject && `Invalid value at 'contents[${at}].parts[${place}].${name}' (type.googleapis.com/google.protobuf.Struct), ${JSON.stringify(value)}`;
      }),
    ),
  ),
  rule('$ref in a result', 'vercel/ai#14369', ({ body }) =>
    first<Any, string>(turns(body), (turn) =>
      first<Any, string>(answers(turn), ({ functionResponse: { response, parts } }) => {
        const name = referenceIn(response);
        if (name === undefined || list(parts).some((part) => (part.inlineData ?? part.fileData)?.displayName === name)) return undefined;
        return `The referenced name \`${name}\` in function_response.response does not match to a display_name in the function_response.parts.`;
      }),
    ),
  ),
  rule('images in results', 'google-gemini/gemini-cli#19436', ({ model, body }) => {
    const found = turns(body).some((turn) => answers(turn).some(({ functionResponse }) => list(functionResponse.parts).length > 0));
    return found && !isGemini3(model) && 'Unable to submit request because `function_response.parts` is not supported for this model.';
  }),
  rule('thought signatures of calls', 'https://ai.google.dev/gemini-api/docs/thought-signatures', ({ model, body }) => unsigned(model, turns(body))),
  rule('beside $ref only words that begin with $', 'anomalyco/opencode#12295', ({ body }) => {
    const name = besideReference(body.generationConfig?.responseJsonSchema ?? body.generationConfig?._responseJsonSchema);
    return name !== undefined && `* GenerateContentRequest.generation_config.response_json_schema: $ref may not be used together with other fields: ${name}\n`;
  }),
  rule('functions and JSON', 'BerriAI/litellm#18621', ({ model, body }) =>
    !isGemini3(model) && functionsOf(body).length > 0 && body.generationConfig?.responseMimeType === 'application/json'
      ? "Function calling with a response mime type: 'application/json' is unsupported"
      : undefined,
  ),
  rule('functions and tools of its own', 'vercel/ai#8258', ({ model, body }) => {
    const hasOwn = list(body.tools).some((tool) => Object.keys(tool).some((name) => name !== 'functionDeclarations'));
    if (functionsOf(body).length === 0 || !hasOwn) return undefined;
    if (!isGemini3(model)) return 'Tool use with function calling is unsupported';
    // https://ai.google.dev/gemini-api/docs/tool-combination
    return body.toolConfig?.includeServerSideToolInvocations === true
      ? undefined
      : 'Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.';
  }),
  rule('penalties', 'BerriAI/litellm#32273', ({ model, body: { generationConfig: config } }) =>
    has(config?.presencePenalty) || has(config?.frequencyPenalty) ? `Penalty is not enabled for models/${model}` : undefined,
  ),
  rule('a calling config needs functions', 'UKGovernmentBEIS/inspect_ai#2462', ({ body }) =>
    has(body.toolConfig?.functionCallingConfig) && functionsOf(body).length === 0 ? 'Function calling config is set without function_declarations.' : undefined,
  ),
  rule('budgets and levels', 'snailyp/gemini-balance#206', ({ model, body }) => unfitThinking(model, body.generationConfig?.thinkingConfig)),
  rule('values in their range', reference, ({ body: { generationConfig: config } }) => {
    if (has(config?.temperature) && (config.temperature < 0 || config.temperature > 2))
      return `* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0]\n`;
    if (list(config?.stopSequences).length > 5)
      return '* GenerateContentRequest.generation_config.stop_sequences: the number of stop sequences must not exceed 5\n';
    return has(config?.maxOutputTokens) && config.maxOutputTokens < 1 ? 'max_output_tokens must be positive.' : undefined;
  }),
];

function strangeSchema(schema: Any, at: string): Refusal | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  // Protocol buffers know each name in two spellings: https://protobuf.dev/programming-guides/json/
  const name = Object.keys(schema).find((one) => others({ [inCamelCase(one)]: true }, schemaFields).length > 0);
  if (name !== undefined) return unknown(name, at);
  return (
    first(Object.entries(schema.properties ?? {}), ([_, one], place) => strangeSchema(one, `${at}.properties[${place}].value`)) ??
    first<Any, Refusal>(list(schema.anyOf), (one, place) => strangeSchema(one, `${at}.any_of[${place}]`)) ??
    strangeSchema(schema.items, `${at}.items`)
  );
}

const inCamelCase = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function outOfTurn(all: readonly Any[]): string | undefined {
  for (const [at, turn] of all.entries()) {
    const before = all[at - 1];
    const asked = calls(before).length;
    const answered = answers(turn).length;
    if (calls(turn).length > 0 && before?.role !== 'user' && before?.role !== 'function')
      return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
    if (answered > 0 && asked === 0) return 'Please ensure that function response turn comes immediately after a function call turn.';
    if (asked !== answered)
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
  }
  return undefined;
}

/** In the turns since the user last said something the first call of each needs the signature it came with. Another's is no signature. */
function unsigned(model: string, all: readonly Any[]): string | undefined {
  const since = all.findLastIndex((turn) => turn.role !== 'model' && answers(turn).length === 0);
  for (const [at, turn] of all.entries()) {
    for (const [place, { thoughtSignature: signature, functionCall }] of calls(turn).entries()) {
      if (has(signature) && !String(signature).startsWith(mark) && !dummies.has(signature)) return 'Thought signature is not valid';
      if (has(signature) || place > 0 || at < since || !isGemini3(model)) continue;
      return `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${functionCall.name}\` , position ${at + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`;
    }
  }
  return undefined;
}

function unfitThinking(model: string, config: Any): string | undefined {
  const { thinkingBudget: budget, thinkingLevel: level } = config ?? {};
  if (has(budget) && has(level)) return 'You can only set only one of thinking budget and thinking level.';
  if (has(level)) {
    if (!isGemini3(model)) return 'Thinking level is not supported for this model.';
    return ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'].includes(String(level).toUpperCase()) ? undefined : `Thinking level ${level} is not supported for this model.`;
  }
  if (!has(budget) || budget === -1) return undefined;
  const [least, most] = isPro25(model) ? [128, 32_768] : [0, 24_576];
  if (budget === 0 && least > 0) return 'Budget 0 is invalid. This model only works in thinking mode.';
  if (budget >= least && budget <= (isGemini3(model) ? 32_768 : most)) return undefined;
  return `The thinking budget ${budget} is invalid. Please choose a value between ${least} and ${most}.`;
}

/** The first `$ref` anywhere in a value. */
function referenceIn(value: Any): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (typeof value.$ref === 'string') return value.$ref;
  return first<Any, string>(Object.values(value), (one) => referenceIn(one));
}

function besideReference(schema: Any): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if (typeof schema.$ref === 'string') {
    const beside = Object.keys(schema).find((name) => !name.startsWith('$'));
    if (beside !== undefined) return beside;
  }
  return first<Any, string>(Object.values(schema), (one) => besideReference(one));
}
