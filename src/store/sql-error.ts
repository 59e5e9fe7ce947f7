import { Fault } from '#core/fault';

/** What both databases tell of an error; the embedded one through its worker, the server through `pg`. */
export interface RawSqlError {
  readonly message: string;
  /** https://www.postgresql.org/docs/15/errcodes-appendix.html */
  readonly code?: string | undefined;
  readonly constraint?: string | undefined;
  readonly table?: string | undefined;
  readonly column?: string | undefined;
  /** Only a PostgreSQL server sends it; the embedded database does not. */
  readonly severity?: string | undefined;
}

/** A statement that the database understood and refused. Its `detail` stays behind: it quotes the row. */
export class SqlError extends Error {
  readonly code: string;
  readonly constraint: string | undefined;
  readonly table: string | undefined;
  readonly column: string | undefined;
  declare readonly severity?: string; // only there where a server gave it

  constructor(raw: RawSqlError) {
    super(raw.message);
    this.name = 'SqlError';
    this.code = raw.code ?? 'XX000';
    this.constraint = raw.constraint;
    this.table = raw.table;
    this.column = raw.column;
    if (raw.severity !== undefined) this.severity = raw.severity;
  }
}

/** Does the error say that a row like this one is there already? */
export function isDuplicate(error: unknown, constraint?: string): boolean {
  return error instanceof SqlError && error.code === '23505' && (constraint === undefined || error.constraint === constraint);
}

/** Did two transactions get in each other's way? Such a one may be run again from its start. */
export const isCollision = (error: unknown): boolean => error instanceof SqlError && (error.code === '40001' || error.code === '40P01');

/** The database cannot be asked right now. */
export function overloaded(message: string, cause?: unknown): Fault {
  return new Fault('overloaded', message, { retryAfter: 1, ...(cause === undefined ? {} : { cause }) });
}

/** Does the database only read, as a replica does? */
export const onlyReads = (error: unknown): boolean => error instanceof Fault && error.details.cause instanceof SqlError && error.details.cause.code === '25006';

/** An error of the database as the server speaks of it. */
export function refusalOf(raw: RawSqlError): Fault | SqlError {
  const error = new SqlError(raw);
  const { code } = error;
  if (code === '22021' || code === '22P05')
    return new Fault('invalid', 'Text must be valid UTF-8 without the character U+0000.', { reason: 'null-character', cause: error });
  // JSON that was written here is broken in one way alone: a text in it has half of a surrogate pair
  if (code === '22P02' && /\bjson\b/.test(raw.message))
    return new Fault('invalid', 'Text must be valid Unicode, without half of a surrogate pair.', { reason: 'half-character', cause: error });
  if (code === '57014') return overloaded('The database took too long.', error);
  if (code === '25006') return overloaded('The database cannot be written to right now.', error);
  if (code === '25P03') return overloaded('A transaction was left waiting too long.', error);
  if (/^(08|53|57P|58)/.test(code)) return overloaded('The database cannot answer right now.', error);
  return error;
}
