import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock as clock } from '#kit/async/clock';
import { openUpstreams } from '#kit/upstream/pool';
import { listening } from '../../../test/support/fakes/listening.ts';
import { fileToken } from './tokens.ts';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const hour = 3_600_000;

test.each([
  [-hour, /^The token endpoint answered 400 \(invalid_grant\)\. This machine's clock is 3\d{3} seconds ahead\.$/],
  [hour, /^The token endpoint answered 400 \(invalid_grant\)\. This machine's clock is 3\d{3} seconds behind\.$/],
  [0, /^The token endpoint answered 400 \(invalid_grant\)\.$/],
])('a refusal of the token endpoint tells its code, and where its clock is %d ms ahead, that', async (ahead, message) => {
  const office = createServer((_, response) => {
    response.writeHead(400, { date: new Date(Date.now() + ahead).toUTCString() });
    response.end('{"error": "invalid_grant", "error_description": "Invalid JWT of us@my-project.example"}');
  });
  const file = join(await mkdtemp(join(tmpdir(), 'dragoman-account-')), 'key.json');
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(file, JSON.stringify({ client_email: 'us@my-project.example', private_key: key, token_uri: await listening(office) }));
  const upstreams = openUpstreams({ clock, connectSeconds: () => 3, proxy: '', noProxy: '' });
  onTestFinished(() => upstreams.close());
  await expect(fileToken(file, { upstreams, clock, signal: new AbortController().signal })).rejects.toThrow(message);
});
