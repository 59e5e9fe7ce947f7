import { userInfo } from 'node:os';

/** An error of a command in words that say what the system or the database said, and what to do. Never a message that could quote a password. */
export function startProblem(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const fromPostgres = causeWith(error, 'severity');
  if (error.name === 'Fault' && error.message.startsWith('The database'))
    return `${error.message}${databaseSays(error, fromPostgres)} Check DATABASE_URL (databaseUrl in the settings file); dragoman doctor says more.`;
  if (codeOf(error) === '42501')
    return `The database refuses: ${error.message}. Make the role of DATABASE_URL the owner of the database, or let its owner run: GRANT USAGE, CREATE ON SCHEMA public TO the role.`;
  if (error.message.startsWith('The embedded database in '))
    return `${error.message.replace(/\.$/, '')}. Restore the data folder from a backup, or name another with --data or DRAGOMAN_DATA: a server starts afresh there.`;
  const { path, syscall } = error as NodeJS.ErrnoException;
  const advice = advices[codeOf(error) ?? ''];
  return advice !== undefined && path !== undefined && syscall !== undefined ? `${path} ${advice()}` : error.message;
}

const other = 'name another folder with --data or DRAGOMAN_DATA';
const advices: Readonly<Record<string, () => string>> = {
  EEXIST: () => `is a file where a folder is needed: ${other}.`,
  ENOTDIR: () => `leads through a file where a folder is needed: ${other}.`,
  EACCES: () => `may not be used by the user ${userInfo().username}: give it to that user, or ${other}.`,
  EPERM: () => `may not be changed by the user ${userInfo().username}: give it to that user, or ${other}.`,
  EROFS: () => `is on a file system that is read-only: ${other}.`,
  ENOSPC: () => `cannot be written: the disk is full. Free some space, or ${other}.`,
  EDQUOT: () => `cannot be written: the disk quota of the user is used up. Free some space, or ${other}.`,
};

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

function codeOf(error: Error): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[A-Z0-9_]{3,60}$/.test(code) ? code : undefined;
}
