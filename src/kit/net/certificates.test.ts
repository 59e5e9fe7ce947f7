import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { certificatesIn } from './certificates.ts';

function file(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-pem-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'ca.pem'), text);
  return join(folder, 'ca.pem');
}

test('every certificate of a file is found, whatever stands between them', () => {
  const [one, two] = rootCertificates as [string, string];
  expect(certificatesIn(file(`# One\n${one}\n# Two\n${two.replaceAll('\n', '\r\n')}\n`))).toHaveLength(2);
});

test.each([
  ['nothing in it', '', 'has no PEM certificate in it'],
  ['a key instead', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n', 'has no PEM certificate in it'],
  ['a damaged certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'has a certificate in it that cannot be read'],
])('a file with %s is refused in a sentence', (_what, text, sentence) => {
  expect(() => certificatesIn(file(text))).toThrow(sentence);
});

test('a file that is not there is refused in a sentence', () => {
  expect(() => certificatesIn('/no/such/file.pem')).toThrow('cannot be read (ENOENT)');
});
