import { Fault } from '#core/fault';

/** A fault that names its field as the client spelled it; any other error as it is. @param names what the client calls fields */
export function inOwnWords(error: unknown, names: Readonly<Record<string, string>>): unknown {
  const field = error instanceof Fault ? error.details.field : undefined;
  if (!(error instanceof Fault) || field === undefined || !Object.hasOwn(names, field)) return error;
  const own = names[field]!;
  return new Fault(error.code, error.message.startsWith(`${field} `) ? own + error.message.slice(field.length) : error.message, {
    ...error.details,
    field: own,
  });
}
