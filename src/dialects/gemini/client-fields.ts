import { isObject, type Json } from '#core/json';

/** The request's own name for a field of the call: `turns`, `output.schema`, `tools[0].parameters` or `tool_choice`; other fields stay as they are. */
export function fieldIn(body: unknown, field: string): string {
  if (field === 'turns') return 'contents';
  if (field === 'output.schema') {
    const [config, members] = memberOf(body, 'generationConfig', 'generation_config');
    const [schema] = memberOf(members, 'responseJsonSchema', 'response_json_schema', 'responseSchema', 'response_schema');
    return `${config}.${schema}`;
  }
  if (field === 'tool_choice') return memberOf(body, 'toolConfig', 'tool_config')[0];
  const [, at] = /^tools\[(\d+)\]\.parameters$/.exec(field) ?? [];
  return at === undefined ? field : parametersIn(body, Number(at));
}

/** A tool of this wire becomes several tools of a call: one per function declaration, and one per other member. */
function parametersIn(body: unknown, at: number): string {
  const tools = memberOf(body, 'tools')[1];
  let left = at;
  for (const [place, tool] of (Array.isArray(tools) ? (tools as readonly Json[]) : []).entries()) {
    const [name, declared] = memberOf(tool, 'functionDeclarations', 'function_declarations');
    const functions = Array.isArray(declared) ? (declared as readonly Json[]) : [];
    if (left < functions.length)
      return `tools[${place}].${name}[${left}].${memberOf(functions[left], 'parametersJsonSchema', 'parameters_json_schema', 'parameters')[0]}`;
    left -= functions.length + (isObject(tool) ? Object.keys(tool).filter((one) => one !== name).length : 0);
  }
  return 'tools';
}

/** The first of these members that is present; the first name where none is. */
function memberOf(value: unknown, ...names: readonly [string, ...string[]]): readonly [string, unknown] {
  const members = isObject(value) ? value : {};
  const name = names.find((one) => Object.hasOwn(members, one)) ?? names[0];
  return [name, members[name]];
}
