import { Type, type TObject, type TOptional, type TProperties, type TSchema, type TSchemaOptions, type TUnion } from 'typebox';

/** An object that has no other members than these. */
export const closed = <Members extends TProperties>(members: Members, options: TSchemaOptions = {}): TObject<Members> =>
  Type.Object(members, { additionalProperties: false, ...options });

/** What the schema describes, or null. */
export const nullable = <Schema extends TSchema>(schema: Schema, options?: TSchemaOptions): TUnion<[Schema, Type.TNull]> =>
  Type.Union([schema, Type.Null()], options);

/** A member that may be left out, or be null. */
export const optionalOrNull = <Schema extends TSchema>(schema: Schema, options?: TSchemaOptions): TOptional<TUnion<[Schema, Type.TNull]>> =>
  Type.Optional(nullable(schema, options));
