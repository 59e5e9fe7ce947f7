import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { logLevels } from '#core/log-levels';
import { Fault } from '#core/fault';
import { causeOf } from './log.ts';

/** What a process with this level says when it says one thing of each kind. */
function saidAt(level: string, change = ''): unknown[] {
  const script = `
    const { openLog } = await import(${JSON.stringify(new URL('log.ts', import.meta.url).href)});
    const log = openLog('${level}');
    ${change}
    for (const kind of ['debug', 'info', 'warn', 'error', 'fatal']) log[kind]({}, kind);
    await log.flush();`;
  const { stderr } = spawnSync(process.execPath, ['--conditions=dragoman-source', '--input-type=module', '-e', script], { encoding: 'utf8' });
  return stderr
    .trim()
    .split('\n')
    .map((line) => (line === '' ? line : (JSON.parse(line) as { level: string }).level));
}

test('every level that the settings know is one of the log: it and what is worse is written', () => {
  const written = logLevels.filter((level) => level !== 'trace');
  expect(saidAt('trace')).toEqual(written);
  expect(saidAt('warn')).toEqual(['warn', 'error', 'fatal']);
  expect(saidAt('fatal')).toEqual(['fatal']);
  expect(saidAt('silent')).toEqual(['']);
  expect(saidAt('info', "log.level('fatal')")).toEqual(['fatal']);
}, 120_000);

test('what an error of the runtime or of the database quotes is not repeated in the log', () => {
  const secret = 'swordfish';
  const thrown = (work: () => unknown): unknown => {
    try {
      return work();
    } catch (error) {
      return error;
    }
  };
  const errors = [
    thrown(() => JSON.parse(`{"a": ${secret}}`)),
    thrown(() => JSON.parse(secret)),
    thrown(() => new RegExp(`(${secret}`)),
    thrown(() => BigInt(secret)),
    thrown(() => Buffer.alloc(secret as unknown as number)),
    Object.assign(new Error(`invalid input syntax for type bigint: "${secret}"`), { code: '22P02' }),
    new Error('It failed.', { cause: thrown(() => JSON.parse(secret)) }),
  ];
  for (const error of errors) {
    const { message, cause } = error as Error;
    expect(cause instanceof Error ? cause.message : message).toContain(secret);
    const said = JSON.stringify(causeOf(error));
    expect(said).not.toContain(secret);
    expect(said).toContain('log.test.ts');
  }
});

test('a refusal of a provider is logged by its status and its words, without its prose', () => {
  const cause = { status: 401, type: 'invalid_request_error', code: undefined, message: 'Incorrect API key provided: sk-1.' };
  expect(causeOf(new Fault('upstream-failed', 'It failed.', { cause }))).toMatchObject({ cause: { status: 401, type: 'invalid_request_error' } });
  expect(JSON.stringify(causeOf(new Fault('internal', 'It failed.', { cause })))).not.toContain('sk-1');
});

test('an error of the system has no stack', () => {
  const error = Object.assign(new Error('getaddrinfo ENOTFOUND api.example.org'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' });
  expect(causeOf(error)).toEqual({ name: 'Error', message: 'getaddrinfo ENOTFOUND api.example.org', code: 'ENOTFOUND' });
});

test('an error that quotes nothing is told in its own words', () => {
  const error = Object.assign(new Error('relation "users" does not exist'), { code: '42P01' });
  expect(causeOf(error)).toMatchObject({ message: error.message, stack: error.stack });
});
