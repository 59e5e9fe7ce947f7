import type { Output } from '#core/call';
import type { Json, JsonObject } from '#core/json';
import type { OwnRow } from '../own-rows.ts';

/** A declared call of an address that answers over HTTP. Texts may have places for fields, and all but `url` for secrets. */
export interface DeclaredRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text goes as it is, everything else as JSON. */
  readonly body?: Json;
  /** JSON Pointer (RFC 6901) to what is shown of the answer. */
  readonly answer?: string;
}

export interface DeclaredScript {
  /** A module whose default export is a function. */
  readonly code: string;
  /** Origins that it may fetch from. */
  readonly hosts?: readonly string[];
}

export type Definition =
  | { readonly kind: 'prompt'; readonly template: string; readonly output?: (values: Readonly<Record<string, unknown>>) => Output }
  | { readonly kind: 'http'; readonly request: DeclaredRequest }
  | { readonly kind: 'script'; readonly script: DeclaredScript };

export interface PluginText {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly category: string;
  readonly definition: Definition;
  /** JSON Schema of its values. Absent: any object. */
  readonly fields?: JsonObject;
  /** It takes files. */
  readonly fileMode: boolean;
}

export interface Plugin extends PluginText {
  readonly id: number;
}

export type OwnPlugin = Plugin & OwnRow;
