import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readSettings } from '../../test/support/settings-folder.ts';
import { openJournalOf } from './accounting.ts';
import { systemClock } from '#kit/async/clock';
import type { Log } from '#telemetry/log';

test('too little disk space for the journal is logged as an error, and enough of it again as info', async () => {
  const data = mkdtempSync(join(tmpdir(), 'dragoman-'));
  const logged: string[] = [];
  const write = (level: string) => (_: object, message: string) => void logged.push(`${level}: ${message}`);
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    fatal: write('fatal'),
    level: () => {},
    flush: async () => {},
  };
  const { settings } = readSettings({ cwd: data, env: {}, args: { data } });
  let minFreeBytes = Number.MAX_SAFE_INTEGER;
  const journal = await openJournalOf({
    settings: () => ({ ...settings, limits: { ...settings.limits, minFreeBytes } }),
    clock: systemClock,
    log,
    holder: 'h1',
    writer: 'w1',
  });
  onTestFinished(async () => {
    await journal.close();
    rmSync(data, { recursive: true });
  });
  expect(logged).toEqual([expect.stringMatching(/^error: .*too little room/)]);
  minFreeBytes = 0;
  await expect.poll(() => logged.slice(1), { timeout: 30_000 }).toEqual(['info: The journal can be written again.']);
});
