/** What a model hears in a request: enough to answer sensibly, whatever the wire. */
import { list, type Any, type Heard, type HeardTool, type WireName } from './vendor.ts';

export const hears: Readonly<Record<WireName, (body: Any) => Heard>> = { chat, responses, messages, gemini };

/** Results of tools that a client has no turn for, and writes into one of the user: the last of them. */
export function withWrittenResults(heard: Heard): Heard {
  const written =
    heard.results.length > 0
      ? undefined
      : heard.text
          .split(/^Tool result for [^\n]+:\n/m)
          .slice(1)
          .at(-1);
  return written === undefined ? heard : { ...heard, results: [written] };
}

function chat({ messages, tools, tool_choice: choice, response_format: format }: Any): Heard {
  const turns = list(messages);
  const users = turns.filter(({ role }) => role === 'user');
  const end = turns.findLastIndex(({ role, content }) => role !== 'tool' && role !== 'function' && !(role === 'user' && textOf(content) === '')) + 1;
  const known = list(tools).flatMap(toolOf);
  const allowed = choice?.allowed_tools;
  return {
    text: textOf((users.findLast(({ content }) => textOf(content) !== '') ?? users.at(-1))?.content),
    results: turns.slice(end).flatMap(({ role, content }) => (role === 'user' ? [] : [textOf(content)])),
    tools: allowed ? known.filter(({ name }) => list(allowed.tools).some((one) => (one.function ?? one.custom)?.name === name)) : known,
    ...choiceOf(allowed ? allowed.mode : choice, choice?.function?.name ?? choice?.custom?.name),
    ...(format?.type === 'json_schema' ? { json: { schema: format.json_schema?.schema } } : {}),
    ...(format?.type === 'json_object' ? { json: written(turns.map(({ content }) => textOf(content))) } : {}),
  };
}

function responses({ input, instructions, tools, tool_choice: choice, text }: Any): Heard {
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : list(input);
  const isResult = ({ type }: Any) => type === 'function_call_output' || type === 'custom_tool_call_output';
  const end = items.findLastIndex((item) => !isResult(item)) + 1;
  const known = [...list(tools), ...items.flatMap((item) => (item.type === 'additional_tools' ? list(item.tools) : []))].flatMap(toolOf);
  const format = text?.format;
  return {
    text: textOf(items.findLast(({ role }) => role === 'user')?.content),
    results: items.slice(end).map(({ output }) => textOf(output)),
    tools: choice?.type === 'allowed_tools' ? known.filter(({ name }) => list(choice.tools).some((one) => one.name === name)) : known,
    ...choiceOf(choice?.type === 'allowed_tools' ? choice.mode : choice, choice?.name),
    ...(format?.type === 'json_schema' ? { json: { schema: format.schema } } : {}),
    ...(format?.type === 'json_object' ? { json: written([instructions, ...items.map(({ content }) => textOf(content))]) } : {}),
  };
}

function messages({ messages: all, system, tools, tool_choice: choice, output_config: output }: Any): Heard {
  const turns = list(all);
  const users = turns.filter(({ role }) => role === 'user');
  const last = turns.findLast(({ role }) => role !== 'system');
  const schema = output?.format?.schema;
  const texts = [textOf(system), ...turns.map(({ content }) => textOf(content))];
  return {
    text: textOf(users.findLast(({ content }) => textOf(content) !== '')?.content),
    results: last?.role === 'user' ? list(last.content).flatMap((block) => (block.type === 'tool_result' ? [textOf(block.content)] : [])) : [],
    tools: list(tools).flatMap(({ type = 'custom', name, input_schema }) => (type === 'custom' ? [{ name, schema: input_schema }] : [])),
    ...(choice?.type === 'any' ? { forced: true } : {}),
    ...(choice?.type === 'tool' ? { forced: choice.name } : {}),
    ...(choice?.type === 'none' ? { forbidden: true } : {}),
    ...(schema ? { json: { schema } } : asksForJson(texts) ? { json: written(texts) } : {}),
  };
}

function gemini({ contents, systemInstruction: system, tools, toolConfig, generationConfig: config }: Any): Heard {
  const turns = list(contents);
  const users = turns.filter(({ role }) => role !== 'model');
  const texts = [textOf(system?.parts), ...turns.map(({ parts }) => textOf(parts))];
  const { mode, allowedFunctionNames: names } = toolConfig?.functionCallingConfig ?? {};
  const known = list(tools).flatMap(({ functionDeclarations }) => list(functionDeclarations));
  const schema = config?.responseJsonSchema ?? config?.responseSchema;
  return {
    text: textOf(users.findLast(({ parts }) => textOf(parts) !== '')?.parts),
    results: turns
      .slice(turns.findLastIndex(({ role, parts }) => role === 'model' || textOf(parts) !== '') + 1)
      .flatMap(({ parts }) => list(parts).flatMap(({ functionResponse }) => (functionResponse ? [resultOf(functionResponse.response)] : []))),
    tools: known
      .filter(({ name }) => !names || list(names).includes(name))
      .map(({ name, parametersJsonSchema, parameters }) => ({ name, schema: parametersJsonSchema ?? parameters })),
    ...(mode === 'ANY' ? { forced: true } : {}),
    ...(mode === 'NONE' ? { forbidden: true } : {}),
    ...(config?.responseMimeType === 'text/x.enum' ? { word: String(schema?.enum?.[0] ?? '') } : {}),
    ...(config?.responseMimeType === 'application/json' ? { json: schema ? { schema } : written(texts) } : asksForJson(texts) ? { json: written(texts) } : {}),
  };
}

function toolOf({ type, name, parameters, function: one, custom, tools }: Any): HeardTool[] {
  if (type === 'namespace')
    return list(tools)
      .flatMap(toolOf)
      .map((tool) => ({ ...tool, namespace: name }));
  if (type === 'custom') return [{ name: custom?.name ?? name, custom: true }];
  if (type !== 'function') return [];
  return [{ name: one?.name ?? name, schema: one?.parameters ?? parameters }];
}

function choiceOf(mode: Any, name: Any): Pick<Heard, 'forced' | 'forbidden'> {
  if (typeof name === 'string') return { forced: name };
  if (mode === 'none') return { forbidden: true };
  return mode === 'required' ? { forced: true } : {};
}

const resultOf = (response: Any): string => {
  const said = response?.output ?? response?.result ?? response?.error;
  return typeof said === 'string' ? said : JSON.stringify(response);
};

/** Texts of a string, of parts or of blocks, joined. */
function textOf(content: Any): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => (typeof part?.text === 'string' && part.thought !== true ? part.text : ''))
    .join('');
}

/** Was JSON asked for in words? Only instructions say it so. */
const asksForJson = (texts: readonly string[]): boolean =>
  texts.some((text) => /\b(?:only|single|valid)\b[^.]{0,60}\bJSON\b|\bJSON\b[^.]{0,60}\bonly\b|conforms? to [^.]{0,40}JSON Schema/i.test(text));

/** The schema that a text contains, where one does. */
function written(texts: readonly (string | undefined)[]): { readonly schema?: Any } {
  for (const text of texts) {
    for (let at = text?.indexOf('{') ?? -1; text && at >= 0; at = text.indexOf('{', at + 1)) {
      const value = jsonAt(text, at);
      if (value && (value.type !== undefined || value.properties || value.anyOf || value.$ref)) return { schema: value };
    }
  }
  return {};
}

/** The JSON object that begins here. */
function jsonAt(text: string, at: number): Any {
  for (let end = text.lastIndexOf('}'); end > at; end = text.lastIndexOf('}', end - 1)) {
    try {
      return JSON.parse(text.slice(at, end + 1));
    } catch {
      continue;
    }
  }
  return undefined;
}
