import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { BadSettings, readSettings as readWith, type Origin, type Reading } from '#config/index';
import { providerModules } from '#providers/modules';

/** A folder with this settings file, removed when the test ends. */
export function folderWith(yaml?: string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  if (yaml !== undefined) writeFileSync(join(folder, 'dragoman.yaml'), yaml);
  return folder;
}

export { providerModules as kinds } from '#providers/modules';

/** Settings as the server reads them, with every kind of provider. */
export const readSettings = (origin: Omit<Origin, 'kinds'> = {}): Reading => readWith({ kinds: providerModules, ...origin });

/** The settings that this file alone gives, or with the options given. */
export const readFrom = (yaml?: string | Buffer, origin: Omit<Origin, 'kinds'> = {}): Reading => readSettings({ cwd: folderWith(yaml), env: {}, ...origin });

/** The problems as they would be printed; empty if there are none. */
export function complaint(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (!(error instanceof BadSettings)) throw error;
    return error.message;
  }
}
