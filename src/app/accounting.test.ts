import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readSettings } from '#config/index';
import { openJournalOf } from './accounting.ts';
import { systemClock } from '#kit/async/clock';
import type { Log } from '#telemetry/log';

test('too little room for the journal is logged as an error, and that there is room again as good news', async () => {
  const data = mkdtempSync(join(tmpdir(), 'dragoman-'));
  const told: string[] = [];
  const say = (level: string) => (_: object, message: string) => void told.push(`${level}: ${message}`);
  const log: Log = {
    debug: say('debug'),
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
    fatal: say('fatal'),
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
  expect(told).toEqual([expect.stringMatching(/^error: .*too little room/)]);
  minFreeBytes = 0;
  await expect.poll(() => told.slice(1), { timeout: 10_000 }).toEqual(['info: The journal can be written again.']);
});
