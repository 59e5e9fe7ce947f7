import * as fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { BadSettings } from './index.ts';
import { folderWith, kinds, readSettings } from '../../test/support/settings-folder.ts';
import type { Rule } from './form.ts';
import { allSettings } from './schema/index.ts';
import { formsFor } from './shape.ts';

vi.setConfig({ testTimeout: 120_000 });

const complete = Compile(allSettings(kinds));
const env = { NAME: 'value', URL: 'https://a.example', OPENAI_API_KEY: 'k' };

const awkward = fc.constantFrom<unknown>(
  '',
  'p',
  'built-in',
  '*',
  'https://{region}.x',
  '${NAME}',
  '${NONE}',
  '${',
  '__proto__',
  'constructor',
  0,
  -1,
  1.5,
  1e300,
  NaN,
  Infinity,
  true,
  null,
  [],
  {},
  { p: null },
);
const names = ['p', 'm', 'us', 'free', 'built-in', '*', 'gpt-5.2', 'gpt-5', 'a.b[0]', 'constructor', 'toString', ''];
/** What makes sense for some members; the others get any word. */
const words: Readonly<Record<string, readonly string[]>> = {
  baseUrl: ['http://x', 'https://{region}.x', '${URL}'],
  url: ['http://x'],
  provider: ['p', 'built-in'],
  region: ['us', 'eu'],
  model: ['m'],
  plan: ['free', 'unlimited'],
};

/** Values that have nearly the form of settings, so that what looks at them later is reached too. */
const nearly = (rule: Rule, name = ''): fc.Arbitrary<unknown> => fc.oneof({ arbitrary: formed(rule, name), weight: 60 }, { arbitrary: awkward, weight: 1 });

function formed(rule: Rule, name = ''): fc.Arbitrary<unknown> {
  if (rule.enum) return fc.constantFrom(...rule.enum);
  if (rule.anyOf) return fc.oneof(...rule.anyOf.map((one) => nearly(one, name)));
  if (rule.items) return fc.array(nearly(rule.items, name), { maxLength: 2 });
  const declared = rule.properties && some(rule.properties, rule.required ?? []);
  if (typeof rule.additionalProperties === 'object') {
    const others = fc.dictionary(fc.constantFrom(...names), nearly(rule.additionalProperties), { maxKeys: 2 });
    return declared ? fc.tuple(fc.option(declared, { freq: 1 }), others).map(([some, more]) => ({ ...(some as object | null), ...more })) : others;
  }
  if (declared) return declared;
  if (rule.type === 'string') return fc.constantFrom(...(words[name] ?? ['p', 'm', 'us']));
  if (rule.type === 'boolean') return fc.boolean();
  return fc.integer({ min: 0, max: 300 });
}

/** What is required, and a few of the other members. */
function some(properties: Readonly<Record<string, Rule>>, required: readonly string[]): fc.Arbitrary<unknown> {
  return fc.shuffledSubarray(Object.keys(properties)).chain((chosen) => {
    const members = new Set([...required, ...chosen.slice(0, 4)]);
    return fc.record(Object.fromEntries([...members].map((name) => [name, nearly(properties[name]!, name)])));
  });
}

/** What comes of a file with this text: `settings`, `complaint`, or what must not be. */
function outcome(folder: string, text: string): string {
  writeFileSync(join(folder, 'dragoman.yaml'), text);
  try {
    const { hidesBuiltIn, offeredBy, ownNames: _, ...settings } = readSettings({ cwd: folder, env }).settings;
    const isComplete = typeof hidesBuiltIn === 'boolean' && (offeredBy === undefined || offeredBy === 'openai') && complete.Check(settings);
    return isComplete ? 'settings' : 'settings that are not complete';
  } catch (error) {
    if (!(error instanceof BadSettings)) return error instanceof Error ? `${error.stack}` : 'something thrown that is no error';
    const places = error.problems.map(({ place }) => place);
    return places.length > 0 && places.every((place) => /^dragoman\.yaml:\d+:\d+$/.test(place)) ? 'complaint' : `a complaint without a place: ${error.message}`;
  }
}

const allowed = ['settings', 'complaint'];

describe('whatever the file says, it is settings that are complete or a complaint with its line', () => {
  test('when it is any JSON', () => {
    const folder = folderWith();
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(allowed).toContain(outcome(folder, stringify(value)));
      }),
      { numRuns: 300 },
    );
  });

  test('when it is nearly a settings file', () => {
    const folder = folderWith();
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(formed(formsFor(kinds).file), (value) => {
        const end = outcome(folder, stringify(value));
        seen.set(end, (seen.get(end) ?? 0) + 1);
        expect(allowed).toContain(end);
      }),
      { numRuns: 600 },
    );
    // Both ways are walked, else this proves little.
    for (const end of allowed) expect(seen.get(end)).toBeGreaterThan(20);
  });

  test('when it is any characters', () => {
    const folder = folderWith();
    const signs = '{}[]:,-?&*!|>%@`"\'# \n\t$\\~<'.split('');
    const piece = fc.constantFrom(...signs, 'port', ': ', '${NAME}', '&a', '*a', '<<', '---', '1', '!!set', 'limits', '\u0000', '\u2028');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        expect(allowed).toContain(outcome(folder, pieces.join('')));
      }),
      { numRuns: 1000 },
    );
  });
});

test.each(['__proto__: { polluted: 1 }', 'models: { __proto__: { polluted: 1 } }', 'constructor: { prototype: { polluted: 1 } }'])(
  '%s changes no other object',
  (text) => {
    expect(outcome(folderWith(), text)).toBe('complaint');
    expect({}).not.toHaveProperty('polluted');
  },
);
