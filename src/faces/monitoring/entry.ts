import type { Schema } from './fields.ts';

export interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Readonly<Record<string, Content>> }>>;
  readonly 'x-scope'?: string;
  readonly 'x-alias-of'?: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

/** An operation with all its addresses. */
export interface Entry {
  readonly method: string;
  readonly path: string;
  readonly also: readonly string[];
  readonly operation: Operation;
}
