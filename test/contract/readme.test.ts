import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
const blocks = [...readme.matchAll(/^```(\w*)\n([^]*?)^```/gm)].map(([, language = '', text = '']) => ({ language, text }));
const written = (language: string) => blocks.filter((block) => block.language === language).map(({ text }) => text);

test('what the README has for a shell can be pasted into zsh, which reads # as a word and ? as a pattern', () => {
  expect(written('sh').length).toBeGreaterThan(5);
  for (const text of written('sh')) {
    expect(text).not.toMatch(/(?:^|\s)#/m);
    expect(text.replaceAll(/'[^']*'|"[^"]*"/g, '')).not.toContain('?');
  }
});

test('each block of JavaScript in the README makes the client that it uses', () => {
  for (const text of written('js')) expect(text).toMatch(/^import [^]*new \w+\(/);
});
