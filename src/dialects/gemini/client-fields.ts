import type { GenerateCall } from '#core/call';
import { isObject, type Json } from '#core/json';
import { clientField } from '../shared/field-names.ts';
import { fieldNames } from './field-names.ts';

/** The request's own name for a field of the call, in the spelling of the client. */
export function fieldIn(body: unknown, field: string, call: GenerateCall): string {
  if (field === 'output.schema' || (field === 'response_format' && call.output.type === 'schema')) {
    const [config, members] = memberOf(body, 'generationConfig', 'generation_config');
    const [schema] = memberOf(members, 'responseJsonSchema', 'response_json_schema', 'responseSchema', 'response_schema', 'responseFormat', 'response_format');
    return `${config}.${schema}`;
  }
  const [, at, member] = /^tools\[(\d+)\](?:\.(name|parameters))?$/.exec(field) ?? [];
  return at === undefined ? spelled(body, clientField(fieldNames, field, call)) : functionIn(body, Number(at), member);
}

/** A path of the request with its names in snake_case where the body has them so. */
export function spelled(body: unknown, path: string): string {
  let value = body;
  return path.replaceAll(/\w+/g, (name) => {
    const [found, inner] = memberOf(
      value,
      name,
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    );
    value = inner;
    return found;
  });
}

/** A tool of this wire becomes several tools of a call: one per function declaration, and one per other member. */
function functionIn(body: unknown, at: number, member: string | undefined): string {
  const tools = memberOf(body, 'tools')[1];
  let left = at;
  for (const [place, tool] of (Array.isArray(tools) ? (tools as readonly Json[]) : []).entries()) {
    const [name, declared] = memberOf(tool, 'functionDeclarations', 'function_declarations');
    const functions = Array.isArray(declared) ? (declared as readonly Json[]) : [];
    if (left < functions.length) {
      const own = `tools[${place}].${name}[${left}]`;
      if (member === undefined) return own;
      return `${own}.${member === 'name' ? member : memberOf(functions[left], 'parametersJsonSchema', 'parameters_json_schema', 'parameters')[0]}`;
    }
    left -= functions.length + (isObject(tool) ? Object.keys(tool).filter((one) => one !== name).length : 0);
  }
  return 'tools';
}

/** The first of these members that is present; the first name where none is. */
function memberOf(value: unknown, ...names: readonly [string, ...string[]]): readonly [string, unknown] {
  const members: Readonly<Record<string, unknown>> = isObject(value) ? value : Array.isArray(value) ? { ...value } : {};
  const name = names.find((one) => Object.hasOwn(members, one)) ?? names[0];
  return [name, members[name]];
}
