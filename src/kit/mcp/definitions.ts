import { createHash } from 'node:crypto';

/** A tool as its server describes it, within the bounds that hold for all. */
export interface McpDefinition {
  readonly name: string;
  /** At most 4 KB, without control characters other than line breaks and tabs. */
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** The server says that a call changes nothing. */
  readonly isReadOnly: boolean;
  /** Tells this definition from every other one: a changed definition has another. */
  readonly digest: string;
  /** Of all of it, as JSON. */
  readonly bytes: number;
  /** Its schema says that arguments are sent as headers. */
  readonly namesHeaders: boolean;
}

export const mostTools = 128;
/** Bytes of all definitions of a server that are kept. */
export const mostDefinitions = 524_288;
const mostDescription = 4096;
/** Bytes of a definition, with its schemas. */
const mostDefinition = 65_536;
const goodName = /^[A-Za-z0-9_./:-]{1,128}$/;

interface ReadDefinitions {
  readonly definitions: readonly McpDefinition[];
  /** Names of those that cannot be used; empty: one that is no name. */
  readonly unusable: readonly string[];
  /** There are more behind the 128th. */
  readonly isFull: boolean;
}

/** The definitions in an unchecked list. Invalid and repeated names, definitions that are too large, and those after the 128th are left out. */
export function definitionsIn(tools: readonly unknown[]): ReadDefinitions {
  const found = new Map<string, McpDefinition>();
  const unusable: string[] = [];
  for (const tool of tools) {
    if (found.size >= mostTools) return { definitions: [...found.values()], unusable, isFull: true };
    const definition = definitionIn(tool);
    if (definition && !found.has(definition.name)) found.set(definition.name, definition);
    else if (unusable.length < mostTools) unusable.push(nameIn(tool));
  }
  return { definitions: [...found.values()], unusable, isFull: false };
}

const nameIn = (tool: unknown): string => (isRecord(tool) && typeof tool['name'] === 'string' && goodName.test(tool['name']) ? tool['name'] : '');

function definitionIn(tool: unknown): McpDefinition | undefined {
  if (!isRecord(tool)) return undefined;
  const { name, description, inputSchema, annotations } = tool;
  if (typeof name !== 'string' || !goodName.test(name) || !isObjectSchema(inputSchema)) return undefined;
  const said = typeof description === 'string' ? description : '';
  const isReadOnly = isRecord(annotations) && annotations['readOnlyHint'] === true && annotations['destructiveHint'] !== true;
  const text = jsonOf({ name, said, inputSchema, isReadOnly });
  if (text === undefined || text.length > mostDefinition) return undefined;
  const digest = createHash('sha256').update(text).digest('base64url');
  return {
    name,
    description: shortened(said),
    inputSchema: wellFormed(inputSchema, text),
    isReadOnly,
    digest,
    bytes: Buffer.byteLength(text),
    namesHeaders: text.includes('x-mcp-header'),
  };
}

const halfPair = /((?<!\\)(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

/** A schema without halves of surrogate pairs, with which clients could not parse the list that it is in. @param json has it as a member */
function wellFormed(inputSchema: Record<string, unknown>, json: string): Record<string, unknown> {
  const repaired = json.replaceAll(halfPair, '$1\\ufffd');
  return repaired === json ? inputSchema : (JSON.parse(repaired) as { readonly inputSchema: Record<string, unknown> }).inputSchema;
}

/** As the protocol wants the schemas of arguments. */
const isObjectSchema = (schema: unknown): schema is Record<string, unknown> =>
  isRecord(schema) &&
  schema['type'] === 'object' &&
  (schema['properties'] === undefined || isRecord(schema['properties'])) &&
  (schema['required'] === undefined || (Array.isArray(schema['required']) && schema['required'].every((name) => typeof name === 'string')));

/** Undefined for what is nested too deeply to be written. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function shortened(text: string): string {
  const cut = text.slice(0, mostDescription).toWellFormed();
  const plain = cut.replace(/[\p{Cc}\p{Cf}]/gu, (one) => (one === '\n' || one === '\t' ? one : ' '));
  const bytes = Buffer.from(plain);
  return bytes.length <= mostDescription ? plain : new TextDecoder().decode(bytes.subarray(0, mostDescription - 3)).replace(/\uFFFD$/u, '');
}

export const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
