import { Type, type Static, type TObject, type TOptional, type TProperties, type TSchema, type TSchemaOptions, type TUnion } from 'typebox';

/** An object that has no other members than these. */
export const closed = <Members extends TProperties>(members: Members): TObject<Members> => Type.Object(members, { additionalProperties: false });

/** What the schema describes, or null. */
export const nullable = <Schema extends TSchema>(schema: Schema, options?: TSchemaOptions): TUnion<[Schema, Type.TNull]> =>
  Type.Union([schema, Type.Null()], options);

/** A member that may be left out, or be null. */
export const optionalOrNull = <Schema extends TSchema>(schema: Schema, options?: TSchemaOptions): TOptional<TUnion<[Schema, Type.TNull]>> =>
  Type.Optional(nullable(schema, options));

/** A value as the program has it: texts of the answer may be dates, and lists may be read-only. */
type Stored<Value> = Value extends string ? Value | Date : Value extends readonly (infer Item)[] ? readonly Item[] : Value;

/** Makes answers of rows: the members that the schema names, and no others, with dates as texts in ISO 8601. */
export function shownAs<Members extends TProperties>(schema: TObject<Members>) {
  const names = Object.keys(schema.properties);
  return (row: { readonly [Name in keyof Static<TObject<Members>>]: Stored<Static<TObject<Members>>[Name]> }): Static<TObject<Members>> => {
    const values = row as Readonly<Record<string, unknown>>;
    const shown = names.flatMap((name) =>
      values[name] === undefined ? [] : [[name, values[name] instanceof Date ? values[name].toISOString() : values[name]]],
    );
    return Object.fromEntries(shown) as Static<TObject<Members>>;
  };
}
