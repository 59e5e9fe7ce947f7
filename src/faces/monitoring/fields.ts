import { alternativesOf } from '#kit/json/check';
import { escaped, prose } from '../html.ts';

/** The part of JSON Schema that the document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
}

/** What a schema says of a value, as a list; each alternative of a union by itself. */
export function fieldsHtml(schema: Schema): string {
  if (schema.$ref !== undefined) return `<p>${typeHtml(schema)}</p>`;
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length > 0) return `<ul class="fields">${fields.map(([name, field]) => fieldHtml(name, field, schema.required?.includes(name))).join('')}</ul>`;
  return isPlain(schema) ? `<p><i>${typeHtml(schema)}</i></p>` : innerHtml(schema);
}

function fieldHtml(name: string, field: Schema, isRequired = false): string {
  return `<li><code>${escaped(name)}</code> <i>${typeHtml(field)}</i>${isRequired ? ' <em>required</em>' : ''} ${prose(field.description ?? '')}${innerHtml(field)}</li>`;
}

/** The fields of objects within a value. */
function innerHtml(schema: Schema): string {
  if (schema.$ref !== undefined) return '';
  if (schema.items) return innerHtml(schema.items);
  if (schema.properties && Object.keys(schema.properties).length > 0) return fieldsHtml(schema);
  const forms = alternativesOf(schema).filter((one) => one !== schema && !isPlain(one));
  if (forms.length === 1) return innerHtml(forms[0]!);
  return forms.map((one, at) => `<div class="either"><p>${at === 0 ? 'either' : 'or'} ${typeHtml(one)}</p>${innerHtml(one)}</div>`).join('');
}

/** Is everything about it said by its type? */
function isPlain(schema: Schema): boolean {
  if (schema.$ref !== undefined) return true;
  if (schema.anyOf) return schema.anyOf.every(isPlain);
  if (schema.items) return isPlain(schema.items);
  return schema.properties === undefined || Object.keys(schema.properties).length === 0;
}

function typeHtml(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return `<a href="#schema-${escaped(name)}">${escaped(name)}</a>`;
  }
  if ('const' in schema) return escaped(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((one) => escaped(JSON.stringify(one))).join(' | ');
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeHtml))].join(' | ');
  const fallback = schema.default === undefined ? '' : `, default ${escaped(JSON.stringify(schema.default))}`;
  if (schema.type === 'array') return `array of ${schema.items ? typeHtml(schema.items) : 'anything'}${range(schema.minItems, schema.maxItems)}${fallback}`;
  return `${escaped(schema.type ?? 'anything')}${range(schema.minimum, schema.maximum)}${tagHtml(schema)}${fallback}`;
}

/** What tells an alternative from the others. */
function tagHtml({ properties }: Schema): string {
  const tag = properties?.['type'] ?? properties?.['role'];
  return tag && 'const' in tag ? ` ${escaped(JSON.stringify(tag.const))}` : '';
}

/** The bounds of all integers say nothing. */
function range(lower: number | undefined, upper: number | undefined): string {
  const least = lower === Number.MIN_SAFE_INTEGER ? undefined : lower;
  const most = upper === Number.MAX_SAFE_INTEGER ? undefined : upper;
  if (least === undefined && most === undefined) return '';
  if (most === undefined) return ` ≥ ${least}`;
  return least === undefined ? ` ≤ ${most}` : ` ${least}…${most}`;
}
