import { lstatSync } from 'node:fs';
import { userInfo } from 'node:os';
import { program } from '#config/program';

/** An error of a command in words that say what the system or the database said, and what to do. Never a message that could quote a password. */
export function startProblem(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (causeWithCode(error, 'EMFILE'))
    return 'This process may not open enough files at once. Raise its limit (ulimit -n 65536 in the shell that starts it, LimitNOFILE=65536 in a systemd unit), and start again.';
  if (causeWithCode(error, 'ENFILE'))
    return 'The system has no room for another open file: end what holds many open, or raise its limit (sysctl fs.file-max), and start again.';
  if (causeWithCode(error, 'MODULE_NOT_FOUND') || causeWithCode(error, 'ERR_MODULE_NOT_FOUND'))
    return `This installation is incomplete: ${error.message.split('\n', 1)[0]}. Run "npm ci" in the folder of Dragoman, or install its package again.`;
  const fromPostgres = causeWith(error, 'severity');
  if (!fromPostgres && causeWithCode(error, '25006'))
    return `The embedded database cannot be written: the disk of the data folder is nearly full. Free some space, or ${other}.`;
  if (error.name === 'Fault' && error.message.startsWith('The database'))
    return `${error.message}${databaseSays(error, fromPostgres)} Check DATABASE_URL (databaseUrl in the settings file); ${program} doctor says more.`;
  if (codeOf(error) === '42501')
    return `The database refuses: ${error.message}. Make the role of DATABASE_URL the owner of the database, or let its owner run: GRANT USAGE, CREATE ON SCHEMA public TO the role.`;
  if (fromPostgres && causeWithCode(error, '22P05'))
    return `The database refuses: ${fromPostgres.message}. It is not in UTF-8: make one (CREATE DATABASE dragoman ENCODING 'UTF8' TEMPLATE template0), and name it in DATABASE_URL (databaseUrl in the settings file).`;
  if (fromPostgres && otherTables.has(codeOf(error) ?? ''))
    return `The database refuses: ${error.message}. Its tables are those of another program, or a part of a backup: name an empty database in DATABASE_URL (databaseUrl in the settings file), or restore the whole backup.`;
  if (error.message.startsWith('The embedded database in ') && error.message.includes('Permission denied'))
    return `${error.message.replace(/\.$/, '')}. Give that folder and all that is in it to the user ${ownName()}, or ${other}.`;
  if (error.message.startsWith('The embedded database in '))
    return `${error.message.replace(/\.$/, '')}. Restore the data folder from a backup, or name another with --data or DRAGOMAN_DATA: a server starts afresh there.`;
  const { path, syscall } = error as NodeJS.ErrnoException;
  const code = codeOf(error) ?? '';
  const advice = code === 'ENOENT' && syscall !== 'mkdir' ? undefined : advices[code];
  if (advice === undefined || syscall === undefined) return error.message;
  if (path !== undefined) return `${path} ${advice(path)}`;
  return isFull.has(code) ? `A file ${advice('')}` : error.message; // of what is written, the system gives no name
}

const isFull: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);
const other = 'name another folder with --data or DRAGOMAN_DATA';
const gone = () => `is on a file system that does not answer: mount it again, or ${other}.`;
const advices: Readonly<Record<string, (path: string) => string>> = {
  EEXIST: (path) =>
    isLink(path) ? `is a link to something that is not there: mount or make that, or ${other}.` : `is a file where a folder is needed: ${other}.`,
  ENOENT: () => `cannot be made: the folder above it takes no files. Mount what belongs there, or ${other}.`,
  ELOOP: () => `is a link that leads back to itself: ${other}.`,
  ENAMETOOLONG: () => `has a name that is too long for the file system: ${other}.`,
  EIO: gone,
  ENOTCONN: gone,
  ESTALE: gone,
  ENODEV: gone,
  ENOTDIR: () => `leads through a file where a folder is needed: ${other}.`,
  EACCES: () => `may not be used by the user ${ownName()}: give it to that user, or ${other}.`,
  EPERM: () => `may not be changed, not even by its owner: ${other}.`,
  EROFS: () => `is on a file system that is read-only: ${other}.`,
  ENOSPC: () => `cannot be written: the disk is full. Free some space, or ${other}.`,
  EDQUOT: () => `cannot be written: the disk quota of the user is used up. Free some space, or ${other}.`,
};

/** A table or a column that is missing, there already, or of another type. */
const otherTables: ReadonlySet<string> = new Set(['42P01', '42P07', '42703', '42804']);

/** The user of this process; by number where it has no name, as in some containers. */
function ownName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}

const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

/** What PostgreSQL, its driver or the system said. */
function databaseSays(error: Error, fromPostgres: Error | undefined): string {
  if (fromPostgres) return ` PostgreSQL says: ${fromPostgres.message.replace(/\.$/, '')}.`;
  const connecting = causeWith(error, 'syscall');
  if (connecting) return ` The system says: ${connecting.message}.`;
  for (let one: unknown = error.cause; one instanceof Error; one = one.cause) {
    if (one instanceof AggregateError && one.errors[0] instanceof Error) return ` The system says: ${one.errors[0].message}.`;
    const known =
      /^(?:The server does not support SSL connections|Connection terminated|self-signed certificate|unable to (?:get|verify)|certificate has expired|Hostname\/IP does not match)[\w '-]*/i.exec(
        one.message,
      );
    if (known) return ` The driver says: ${known[0]}.`;
    const code = codeOf(one);
    if (code !== undefined) return ` The system says: ${code}.`;
  }
  return '';
}

/** The first cause with this member. */
function causeWith(error: Error, member: string): Error | undefined {
  for (let one: unknown = error; one instanceof Error; one = one.cause) if (member in one) return one;
  return undefined;
}

function causeWithCode(error: Error, code: string): boolean {
  for (let one: unknown = error; one instanceof Error; one = one.cause) if (codeOf(one) === code) return true;
  return false;
}

function codeOf(error: Error): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[A-Z0-9_]{3,60}$/.test(code) ? code : undefined;
}
