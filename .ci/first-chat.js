// node first-chat.js URL FILE: waits for the key that a first start prints into FILE, has one chat with it, and prints it.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const [url, file] = process.argv.slice(2);
const begun = Date.now();

const key = (await printedKey()) ?? refuse('no key was printed within 60 s');
const word = `word-${Math.random().toString(36).slice(2)}`;
const answer = await fetch(`${url}/server/chatcompat/v1/chat/completions`, {
  method: 'POST',
  headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'built-in', messages: [{ role: 'user', content: `Say exactly: ${word}` }] }),
  signal: AbortSignal.timeout(30_000),
});
const text = await answer.text();
if (answer.status !== 200 || JSON.parse(text).choices[0].message.content.trim() !== word) refuse(`${answer.status} ${text}`);
console.error(`   answered ${Date.now() - begun} ms after the start`);
console.log(key);

async function printedKey() {
  while (Date.now() - begun < 60_000) {
    const found = /(?<![\w-])[\w-]{64}(?![\w-])/.exec(readFileSync(file, 'utf8'));
    if (found) return found[0];
    await sleep(50);
  }
  return undefined;
}

/** @returns {never} */
function refuse(why) {
  console.error(`   ${why}`);
  process.exit(1);
}
