/*
 * The thread in which the embedded database lives. It opens the folder it is given, says `open`, and answers batches of statements in order.
 * A fatal error of the database is reported at once and ends the thread: PGlite would swallow it and never answer again.
 */
import { closeSync, fdatasyncSync, fsyncSync, openSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite, protocol, type messages } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import type { RawSqlError } from '#store/sql-error';
import { decoders, type Decoder, type WireValue } from '#store/values';

/* The types of `node` have no WebAssembly, and those that have bring the whole of a browser. */
declare global {
  namespace WebAssembly {
    interface Module {
      readonly [Symbol.toStringTag]: string;
    }
    function compile(bytes: Uint8Array): Promise<Module>;
  }
}

export interface Start {
  readonly folder: string;
  /** Settings of PostgreSQL: `shared_buffers=64MB`. */
  readonly settings: readonly string[];
  /** Arguments of initdb where the folder is empty. */
  readonly create?: readonly string[];
}

/** What a thread is given: with PGlite's program, compiled. */
export interface ThreadStart extends Start {
  readonly program: WebAssembly.Module;
}

export type Statement = readonly [text: string, parameters: readonly WireValue[]];

export interface Reply {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly affected?: number;
  readonly command?: string;
  readonly error?: RawSqlError;
}

export type FromWorker = { readonly type: 'open' } | { readonly type: 'reply'; readonly reply: Reply } | { readonly type: 'fatal'; readonly reason: string };

/** `close` writes a last checkpoint and ends the thread. */
export type ToWorker = { readonly type: 'batch'; readonly statements: readonly Statement[] } | { readonly type: 'close' };

/** PostgreSQL's way out of an error, which is no failure; see POSTGRES_MAIN_LONGJMP in PGlite. */
const longjmp = 100;

const port = parentPort!;
const { folder, settings, create, program } = workerData as ThreadStart;
const complaints: string[] = [];

/** What emscripten's file system gives us, as far as we use it. */
interface Module {
  readonly FS: {
    readonly filesystems: {
      readonly NODEFS: {
        realPath(node: unknown): string;
        readonly stream_ops: { fsync?: (stream: { readonly nfd?: number; readonly node: unknown }) => number };
      };
    };
  };
  _PostgresMainLoopOnce: () => void;
}

/** PGlite's folder on disk, with an fsync that is one: PGlite has none. */
class SyncedFS extends NodeFS {
  override async init(...[pg, options]: Parameters<NodeFS['init']>): ReturnType<NodeFS['init']> {
    const { emscriptenOpts } = await super.init(pg, options);
    const sync = (module: unknown) => {
      const nodefs = (module as Module).FS.filesystems.NODEFS;
      nodefs.stream_ops.fsync = ({ nfd, node }) => {
        if (nfd === undefined) syncFolder(nodefs.realPath(node));
        else fdatasyncSync(nfd);
        return 0;
      };
    };
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [sync, ...(emscriptenOpts.preRun as (() => void)[])] } };
  }
}

function syncFolder(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const database = new PGlite({
  fs: new SyncedFS(folder),
  extensions: { vector },
  pgliteWasmModule: program,
  parsers: decoders,
  startParams: [...PGlite.defaultStartParams.filter((one) => one !== '-F'), ...['wal_sync_method=fsync', ...settings].flatMap((one) => ['-c', one])],
  ...(create && { initDbStartParams: [...create] }),
  onStderr: (text) => {
    if (/FATAL|PANIC/.test(text)) complaints.push(text.replace(/^.*?(FATAL|PANIC)/, '$1'));
    return false;
  },
});

try {
  await database.waitReady;
} catch (error) {
  die(error);
}

const module = database.Module as unknown as Module;
const once = module._PostgresMainLoopOnce;
module._PostgresMainLoopOnce = () => {
  try {
    once();
  } catch (error) {
    if ((error as { status?: unknown }).status !== longjmp) die(error);
    throw error;
  }
};

function die(error: unknown): never {
  say({ type: 'fatal', reason: complaints.length > 0 ? complaints.slice(0, 3).join(' ') : String(error) });
  process.exit(1);
}

port.on('message', (message: ToWorker) => void (message.type === 'close' ? close() : answer(message.statements)));
say({ type: 'open' });

function say(message: FromWorker): void {
  port.postMessage(message);
}

/** Each reply goes out at once: one that waited for its neighbours would wait for a slow one, too. */
async function answer(statements: readonly Statement[]): Promise<void> {
  for (const statement of statements) say({ type: 'reply', reply: await replyTo(statement) });
}

async function replyTo(statement: Statement): Promise<Reply> {
  try {
    return replyOf(await database.execProtocolStream(packet(statement), { syncToFs: false, throwOnError: false }));
  } catch (error) {
    return { columns: [], rows: [], error: { message: String(error) } };
  }
}

/** The whole statement as one packet: 70 µs, where PGlite's own `query` sends six and takes 170. */
function packet([text, parameters]: Statement): Uint8Array {
  const { serialize } = protocol;
  if (parameters.length === 0) return serialize.query(text);
  return Buffer.concat([
    serialize.parse({ text }),
    serialize.bind({ values: [...parameters] }),
    serialize.describe({ type: 'P' }),
    serialize.execute({}),
    serialize.sync(),
  ]);
}

/** Of several statements in one text the last one speaks. */
function replyOf(heard: readonly messages.BackendMessage[]): Reply {
  let columns: readonly string[] = [];
  let decode: readonly (Decoder | undefined)[] = [];
  let rows: unknown[][] = [];
  let reply: Reply = { columns, rows };
  for (const message of heard) {
    switch (message.name) {
      case 'rowDescription': {
        const { fields } = message as messages.RowDescriptionMessage;
        columns = fields.map((field) => field.name);
        decode = fields.map((field) => database.parsers[field.dataTypeID]);
        rows = [];
        break;
      }
      case 'dataRow':
        rows.push((message as messages.DataRowMessage).fields.map((text, at) => (text === null ? null : (decode[at]?.(text) ?? text))));
        break;
      case 'commandComplete': {
        const words = (message as messages.CommandCompleteMessage).text.split(' ');
        const count = Number(words.at(-1));
        const command = words[0]!;
        reply = { columns, rows, command, ...(Number.isNaN(count) || command === 'SELECT' ? {} : { affected: count }) };
        [columns, rows] = [[], []];
        break;
      }
      case 'error': {
        const { message: text, code, constraint, table, column } = message as messages.DatabaseError;
        return { columns: [], rows: [], error: { message: text, code, constraint, table, column } };
      }
      default:
    }
  }
  return reply;
}

async function close(): Promise<void> {
  await database.close();
  process.exit(0);
}
