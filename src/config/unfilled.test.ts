import { expect, test } from 'vitest';
import { readFrom } from '../../test/support/settings-folder.ts';

const unfilled = (key: string) =>
  readFrom(`providers: { up: { dialect: openai-chat, baseUrl: "https://up.example/v1", apiKeys: ["${key}"] } }`, { env: { UP_KEY: 'k' } }).unfilled;

test.each(['$UP_KEY', 'os.environ/UP_KEY', 'process.env.UP_KEY'])('%s as a key is named with how the value of the variable is written', (key) => {
  expect(unfilled(key)).toEqual(['providers.up.apiKeys[0] is sent as it stands: write "${UP_KEY}" for the value of the variable UP_KEY.']);
});

test.each(['${UP_KEY}', 'sk-proj-1', 'UP_KEY', 'k$UP_KEY'])('nothing is said of the key %s', (key) => {
  expect(unfilled(key)).toEqual([]);
});
