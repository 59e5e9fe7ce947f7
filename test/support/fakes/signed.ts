import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The keys of a fake bucket. */
export const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG', region: 'eu-test-1', bucket: 'files' };
export const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** Is the request signed with the secret, over what arrived? (Signature Version 4, written down once more from its specification.) */
export function isSigned(request: IncomingMessage): boolean {
  const [, credential = '', signed = '', signature = ''] =
    /Credential=\S+?\/(\S+), SignedHeaders=(\S+), Signature=(\w+)/.exec(request.headers.authorization ?? '') ?? [];
  const url = new URL(request.url ?? '', 'http://x');
  const encoded = (text: string) => encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.codePointAt(0)!.toString(16).toUpperCase()}`);
  const query = [...url.searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .toSorted()
    .join('&');
  const headers = signed
    .split(';')
    .map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
    .join('');
  const canonical = [request.method, url.pathname, query, headers, signed, request.headers['x-amz-content-sha256'] ?? 'UNSIGNED-PAYLOAD'].join('\n');
  const [day = '', region = '', service = ''] = credential.split('/');
  const text = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], credential, sha256(canonical)].join('\n');
  const key = hmac(hmac(hmac(hmac(`AWS4${keys.secretAccessKey}`, day), region), service), 'aws4_request');
  return region === keys.region && service === 's3' && hmac(key, text).toString('hex') === signature;
}
