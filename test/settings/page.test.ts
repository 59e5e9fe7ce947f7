import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { settingsPage } from './page.ts';

const root = new URL('../../', import.meta.url);

test('docs/settings.md has every setting and variable as it is: node bin/run.js test/settings/write.ts writes it', () => {
  expect(readFileSync(new URL('docs/settings.md', root), 'utf8')).toBe(settingsPage());
});

test('every variable of its own that the source names is on the page', () => {
  const named = execFileSync('grep', ['-rhoE', 'DRAGOMAN_[A-Z_]+[A-Z]', 'src', 'bin', '--include=*.ts', '--include=*.js'], { cwd: root, encoding: 'utf8' });
  const names = new Set(named.trim().split('\n'));
  expect(names.size).toBeGreaterThan(5);
  expect([...names].filter((name) => !settingsPage().includes(`\`${name}\``))).toEqual([]);
});
