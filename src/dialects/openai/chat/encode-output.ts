import { isTranslated, type GenerateCall, type Output } from '#core/call';
import type { Part } from '#core/conversation';
import type { FaultDetails } from '#core/fault';
import { textOf, type Json, type JsonObject } from '#core/json';
import { jsonInstruction } from '../../shared/json-instruction.ts';
import { dialect } from './wire.ts';

/** What a call asks its answer to be: the response format, and what the model is told where that is not enough. */
export interface EncodedOutput {
  readonly format?: JsonObject;
  readonly instruction?: string | undefined;
  readonly warning?: string;
}

/** What a model accepts as a response format. */
export interface OutputQuirks {
  /** False: it refuses `json_schema`, as DeepSeek does: UKGovernmentBEIS/inspect_ai#4916 */
  readonly schemas?: boolean;
  /** False: it refuses `json_object`. */
  readonly jsonObjects?: boolean;
  /** False: it refuses a schema whose root is no object. */
  readonly anyRoot?: boolean;
  /** False: it refuses a response format beside tools, as Groq does: https://console.groq.com/docs/structured-outputs */
  readonly formatBesideTools?: boolean;
}

export function encodeOutput(call: GenerateCall, quirks: OutputQuirks): EncodedOutput {
  const { output } = call;
  if (output.type === 'text') return {};
  const translated = isTranslated(call, dialect);
  const warning = `response_format: ${reasonFor(output, quirks)}, so it is asked for in an instruction.`;
  if (translated && quirks.formatBesideTools === false && call.tools.length > 0)
    return { instruction: jsonInstruction(output), warning: 'response_format: this model takes none beside tools, so it is asked for in an instruction.' };
  const isOther = isOtherRoot(call, quirks);
  if (output.type === 'schema' && quirks.schemas !== false && !isOther) return { format: schemaFormat(output) };
  const format = quirks.jsonObjects === false || isOther ? {} : { format: { type: 'json_object' } };
  if (output.type === 'schema' || quirks.jsonObjects === false) return { ...format, instruction: jsonInstruction(output), warning };
  // The mode is refused where no message has the word: https://github.com/ultimatejimmy/xray.koplugin/issues/33
  return translated && !mentionsJson(call) ? { ...format, instruction: jsonInstruction(output) } : format;
}

/** Is the schema of a translated call one that the model has no answers for, since its root is no object? */
export const isOtherRoot = (call: GenerateCall, { anyRoot, schemas }: OutputQuirks = {}): boolean =>
  call.output.type === 'schema' && call.output.schema['type'] !== 'object' && (anyRoot === false || schemas === false) && isTranslated(call, dialect);

function reasonFor({ type }: Output, { schemas }: OutputQuirks): string {
  if (type === 'json') return 'this model has no JSON mode';
  return schemas === false ? 'this model takes no JSON schema' : 'this model takes no JSON schema whose root is no object';
}

export function outputLearned<Known extends OutputQuirks>({ field, reason }: FaultDetails, call: GenerateCall, known: Known): Known | undefined {
  const { output, tools } = call;
  switch (field) {
    case 'response_format': {
      const isLast = known.schemas === false && known.jsonObjects === false;
      return reason === 'field-unknown' && output.type !== 'text' && !isLast ? { ...known, schemas: false, jsonObjects: false } : undefined;
    }
    case 'response_format.type':
      if (output.type === 'schema' && known.schemas !== false) return { ...known, schemas: false };
      return output.type !== 'text' && known.jsonObjects !== false ? { ...known, jsonObjects: false } : undefined;
    case 'response_format.root':
      return output.type === 'schema' && known.anyRoot !== false && isTranslated(call, dialect) ? { ...known, anyRoot: false } : undefined;
    case 'response_format.tools':
      return tools.length > 0 && known.formatBesideTools !== false && isTranslated(call, dialect) ? { ...known, formatBesideTools: false } : undefined;
    default:
      return undefined;
  }
}

function schemaFormat({ name = 'answer', description, schema, strict }: Extract<Output, { type: 'schema' }>): JsonObject {
  return {
    type: 'json_schema',
    json_schema: { name, ...(description === undefined ? {} : { description }), schema, ...(strict === undefined ? {} : { strict }) },
  };
}

/** Characters of a text that are searched: to be told twice does no harm. */
const mostSearched = 10_000;

const mentionsJson = ({ turns }: GenerateCall): boolean => turns.some(({ parts }) => parts.some(isAboutJson));
const isAboutJson = (part: Part): boolean => part.type === 'text' && /json/i.test(part.text.slice(0, mostSearched));

/** The messages with an instruction at the end of the first system message. */
export function instructed(messages: readonly JsonObject[], instruction: string | undefined): readonly JsonObject[] {
  if (instruction === undefined) return messages;
  const [first, ...others] = messages;
  if (first?.['role'] !== 'system' && first?.['role'] !== 'developer') return [{ role: 'system', content: instruction }, ...messages];
  const { content } = first;
  const told: Json = Array.isArray(content) ? [...(content as readonly Json[]), { type: 'text', text: instruction }] : `${textOf(content)}\n\n${instruction}`;
  return [{ ...first, content: told }, ...others];
}
