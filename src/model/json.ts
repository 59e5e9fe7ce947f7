/** What `JSON.parse` can return. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** Fields that only one dialect understands, under the name of that dialect (`openai-chat`). They are given back to it alone. */
export type Extra = Readonly<Record<string, JsonObject>>;
