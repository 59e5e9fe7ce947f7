import { expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { startProblem } from './start-problem.ts';

const failed = (code: string, more: object = {}) => Object.assign(new Error(`${code}: the system's own words`), { code, syscall: 'write', ...more });

test('a full disk is told of where the system names no file, and where only the embedded database noticed', () => {
  expect(startProblem(failed('ENOSPC'))).toBe(
    'A file cannot be written: the disk is full. Free some space, or name another folder with --data or DRAGOMAN_DATA.',
  );
  const cause = Object.assign(new Error('cannot execute INSERT in a read-only transaction'), { code: '25006' });
  expect(startProblem(new Fault('overloaded', 'The database cannot be written to right now.', { cause }))).toMatch(/disk of the data folder is nearly full/);
});

test('a database server that only reads is no full disk', () => {
  const cause = Object.assign(new Error('cannot execute INSERT in a read-only transaction'), { code: '25006', severity: 'ERROR' });
  expect(startProblem(new Fault('overloaded', 'The database cannot be written to right now.', { cause }))).toBe(
    'The database cannot be written to right now. PostgreSQL says: cannot execute INSERT in a read-only transaction. Check DATABASE_URL (databaseUrl in the settings file); node bin/dragoman.js doctor says more.',
  );
});

test('too few files that may be open at once are told of with what raises the limit, wherever they lack', () => {
  const cause = failed('EMFILE', { path: '/mnt/data/database', syscall: 'open' });
  const said = /^This process may not open enough files at once\. Raise its limit \(ulimit -n/;
  for (const error of [cause, new Fault('overloaded', 'The database cannot be reached.', { cause })]) expect(startProblem(error)).toMatch(said);
  expect(startProblem(failed('ENFILE'))).toMatch(/^The system has no room for another open file/);
});

test.each([
  ['EROFS', 'is on a file system that is read-only'],
  ['ENOTCONN', 'is on a file system that does not answer: mount it again'],
  ['ESTALE', 'is on a file system that does not answer: mount it again'],
  ['ENOSPC', 'cannot be written: the disk is full'],
])('%s names the folder and what to do', (code, said) => {
  expect(startProblem(failed(code, { path: '/mnt/data', syscall: 'mkdir' }))).toMatch(new RegExp(`^/mnt/data ${said}.*name another folder`));
});

test('a file of the program that is missing is told of with what brings it back', () => {
  const error = Object.assign(new Error("Cannot find module '@electric-sql/pglite'\nRequire stack:\n- /opt/dragoman/dist/store/engine.js"), {
    code: 'MODULE_NOT_FOUND',
  });
  expect(startProblem(error)).toBe(
    'This installation is incomplete: Cannot find module \'@electric-sql/pglite\'. Run "npm ci" in the folder of Dragoman, or install its package again.',
  );
});

test('an embedded database with files of another user needs them given to this one, and no backup', () => {
  const said = startProblem(
    new Error('The embedded database in /data/database cannot be opened: PANIC:  could not open file "global/pg_control": Permission denied'),
  );
  expect(said).toMatch(/Permission denied\. Give that folder and all that is in it to the user /);
});
