import { Type, type TSchema } from 'typebox';
import type { Json, JsonObject } from '#core/json';

/** One of these forms, or absent; null counts as absent. */
export const optional = <Schemas extends TSchema[]>(...schemas: [...Schemas]) => Type.Optional(Type.Union([...schemas, Type.Null()]));
export const anyObject = (description?: string) => Type.Unsafe<JsonObject>(Type.Object({}, description ? { description } : {}));
export const anything = Type.Unsafe<Json>(Type.Unknown());
