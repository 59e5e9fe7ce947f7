import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { logLevels } from './kit/log-levels.ts';

/** What a process with this level says when it says one thing of each kind. */
function saidAt(level: string, change = ''): unknown[] {
  const script = `
    const { openLog } = await import(${JSON.stringify(new URL('log.ts', import.meta.url).href)});
    const log = openLog('${level}');
    ${change}
    for (const kind of ['debug', 'info', 'warn', 'error', 'fatal']) log[kind]({}, kind);
    await log.flush();`;
  const { stderr } = spawnSync(process.execPath, ['--conditions=source', '--input-type=module', '-e', script], { encoding: 'utf8' });
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
}, 60_000);
