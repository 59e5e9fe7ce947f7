import { expect, test } from 'vitest';
import { readFrom } from '../../test/support/settings-folder.ts';

const said = (name: string) =>
  `The provider ${name} is configured, but no model uses it: add one to models in the settings file, such as "*": { targets: [{ provider: ${name} }] } for every other name.`;
const up = 'providers: { up: { dialect: openai-chat, baseUrl: "https://up.example/v1" } }';
const env = { OPENAI_API_KEY: 'a', ANTHROPIC_API_KEY: 'b' };

test.each([
  ['a provider of the file without models', up, {}, ['up']],
  ['a provider of the file with other models', `${up}\nmodels: { built-in: {} }`, {}, ['up']],
  ['those of the environment beside models of the file', 'models: { m: { targets: [{ provider: anthropic }] } }', env, ['openai']],
  ['a provider of the file beside one of the environment', up, { OPENAI_API_KEY: 'a' }, ['up']],
  ['a second one of a vendor', 'providers: { claude: { dialect: anthropic-messages, baseUrl: "https://c.example" } }', env, ['claude']],
])('%s: no model uses it', (_, yaml, env, names) => {
  expect(readFrom(yaml, { env }).unused).toEqual(names.map(said));
});

test.each([
  ['those of the environment, which answer every name', '', env],
  [
    "one of the file that takes a vendor's models",
    'providers: { claude: { dialect: anthropic-messages, baseUrl: "https://c.example" } }',
    { OPENAI_API_KEY: 'a' },
  ],
  ['those of the environment beside plans', 'plans: { free: {} }', env],
  ['a target of a model', `${up}\nmodels: { m: { targets: [{ provider: built-in }, { provider: up }] } }`, {}],
  ['a target of every other name', `${up}\nmodels: { "*": { targets: [{ provider: up }] } }`, {}],
])('%s: nothing is said', (_, yaml, env) => {
  expect(readFrom(yaml, { env }).unused).toEqual([]);
});

test('nothing is said of an Ollama that was found by itself', () => {
  const yaml = 'models: { m: { targets: [{ provider: openai }] } }';
  const ollama = 'http://127.0.0.1:11434';
  expect(readFrom(yaml, { env: { OPENAI_API_KEY: 'a' }, ollama }).unused).toEqual([]);
  expect(readFrom(yaml, { env: { OPENAI_API_KEY: 'a', OLLAMA_HOST: ollama } }).unused).toEqual([said('ollama')]);
});
