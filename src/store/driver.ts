import {
  AbortedTransactionError,
  type CompiledQuery,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';

/** A way to a database: the embedded one's worker or a server's pool, each with a deadline for its statements. */
export interface Lines {
  /** @throws Fault `overloaded` */
  take(): Promise<Line>;
  close(): Promise<void>;
}

/** One line to the database, in one pair of hands. */
export interface Line {
  /** Several statements in one text only without parameters. @throws Fault `overloaded`, SqlError */
  query(text: string, parameters: readonly unknown[]): Promise<Answer>;
  /** From now until `release` no other line's statement comes between. */
  hold(): Promise<void>;
  release(): void;
}

export interface Answer {
  readonly rows: Record<string, unknown>[];
  readonly affected: number | undefined;
  readonly command: string | undefined;
}

/** No table is known by its type: statements are written as SQL. */
export type NoTables = Record<string, never>;
export type Database = Kysely<NoTables>;

/** Kysely over lines: what differs between the two databases is behind them. */
export function kyselyOver(lines: Lines): Database {
  return new Kysely<NoTables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => driverOver(lines),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
}

function driverOver(lines: Lines): Driver {
  const connections = new WeakMap<DatabaseConnection, Line>();
  const lineOf = (connection: DatabaseConnection) => connections.get(connection)!;
  const run = (connection: DatabaseConnection, text: string) => lineOf(connection).query(text, []);
  return {
    init: async () => {},
    async acquireConnection() {
      const line = await lines.take();
      const connection = connectionOver(line);
      connections.set(connection, line);
      return connection;
    },
    async beginTransaction(connection, settings) {
      await lineOf(connection).hold();
      await run(connection, beginText(settings));
    },
    async commitTransaction(connection) {
      const { command } = await run(connection, 'commit');
      if (command === 'ROLLBACK') throw new AbortedTransactionError();
    },
    // what cannot be rolled back was on a line that is gone, and its transaction with it; the first error is the one to tell
    rollbackTransaction: (connection) =>
      run(connection, 'rollback').then(
        () => {},
        () => {},
      ),
    savepoint: async (connection, name) => void (await run(connection, `savepoint ${quoted(name)}`)),
    rollbackToSavepoint: async (connection, name) => void (await run(connection, `rollback to savepoint ${quoted(name)}`)),
    releaseSavepoint: async (connection, name) => void (await run(connection, `release savepoint ${quoted(name)}`)),
    releaseConnection: async (connection) => lineOf(connection).release(),
    destroy: () => lines.close(),
  };
}

function connectionOver(line: Line): DatabaseConnection {
  return {
    async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
      const { rows, affected } = await line.query(sql, parameters);
      return { rows: rows as Row[], ...(affected === undefined ? {} : { numAffectedRows: BigInt(affected) }) };
    },
    async *streamQuery() {
      throw new Error('Rows are not streamed: read in pages.');
    },
  };
}

function beginText({ isolationLevel, accessMode }: TransactionSettings): string {
  return ['begin', isolationLevel && `isolation level ${isolationLevel}`, accessMode].filter(Boolean).join(' ');
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
