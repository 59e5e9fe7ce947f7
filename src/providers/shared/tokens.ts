import { createSign } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '#kit/async/clock';
import { parseJson } from '#kit/json/scan';
import type { Upstreams } from '#kit/upstream/pool';
import { isObject, textOf } from '#core/json';
import { refusalText } from './post.ts';

/** Access tokens of Google's cloud platform, from the places where credentials are stored. https://google.aip.dev/auth */
export interface Token {
  readonly value: string;
  /** Seconds until it expires. */
  readonly seconds: number;
}

/** Why there is no token, in words that operators are shown: nothing of a key is in them. */
export class NoToken extends Error {}

interface TokenDeps {
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const scope = 'https://www.googleapis.com/auth/cloud-platform';
const tokenAddress = 'https://oauth2.googleapis.com/token';
const assertionSeconds = 3600;

/**
 * A token for the account of a key file: a service account, or a user as stored by `gcloud auth application-default login`. The file is read each time, since
 * keys are rotated.
 */
export async function fileToken(file: string, deps: TokenDeps): Promise<Token> {
  const account = accountIn(await readFile(file));
  if (!isObject(account)) throw new NoToken('The key file of the account is not a JSON object.');
  const text = (name: string): string => {
    const value = textOf(account[name]);
    if (value === '') throw new NoToken(`The key file of the account has no ${name}.`);
    return value;
  };
  switch (account['type']) {
    case 'authorized_user':
      return exchanged(
        tokenAddress,
        { grant_type: 'refresh_token', client_id: text('client_id'), client_secret: text('client_secret'), refresh_token: text('refresh_token') },
        deps,
      );
    case undefined:
    case 'service_account': {
      const address = textOf(account['token_uri']) || tokenAddress;
      const assertion = signed(
        { alg: 'RS256', typ: 'JWT', ...(account['private_key_id'] ? { kid: text('private_key_id') } : {}) },
        { iss: text('client_email'), scope, aud: address, iat: seconds(deps.clock), exp: seconds(deps.clock) + assertionSeconds },
        text('private_key'),
      );
      return exchanged(address, { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }, deps);
    }
    default:
      throw new NoToken('The key file has an unsupported type; service_account and authorized_user are supported.');
  }
}

function accountIn(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes);
  } catch {
    return undefined;
  }
}

const seconds = (clock: Clock) => Math.floor(clock.now() / 1000);

/** https://www.rfc-editor.org/rfc/rfc7519 */
function signed(header: object, claims: object, key: string): string {
  const content = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  try {
    return `${content}.${createSign('RSA-SHA256').update(content).sign(key, 'base64url')}`;
  } catch (error) {
    throw new NoToken('The private_key of the key file is not a key in PEM form.', { cause: error });
  }
}

async function exchanged(address: string, form: Readonly<Record<string, string>>, { upstreams, clock, signal }: TokenDeps): Promise<Token> {
  const url = new URL(address);
  const response = await upstreams.post({
    url,
    path: url.pathname + url.search,
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'accept-encoding': 'identity' },
    body: new URLSearchParams(form).toString(),
    signal,
    headSeconds: 10,
    quietSeconds: 10,
  });
  try {
    const { status, headers } = response;
    if (!response.ok) throw refused(status, await refusalText(response), clockHint(Date.parse(headers.date ?? '') - clock.now()));
    return tokenIn(await response.whole(mostBytes));
  } finally {
    response.leave();
  }
}

const mostBytes = 65_536;

/** What may be the reason for a refusal: an assertion of another time is refused. */
const clockHint = (milliseconds: number): string =>
  Math.abs(milliseconds) > 60_000
    ? ` This machine's clock is ${Math.round(Math.abs(milliseconds) / 1000)} seconds ${milliseconds > 0 ? 'behind' : 'ahead'}.`
    : '';

const refused = (status: number, text: string, hint = '') => new NoToken(`The token endpoint answered ${status}${errorCodeIn(text)}.${hint}`);

function tokenIn(bytes: Uint8Array): Token {
  const reply: unknown = parseJson(bytes);
  const value = isObject(reply) ? textOf(reply['access_token']) : '';
  if (!/^[\x21-\x7e]+$/.test(value)) throw new NoToken('The address for tokens gave none.');
  const lifetime = isObject(reply) ? reply['expires_in'] : undefined;
  return { value, seconds: typeof lifetime === 'number' && lifetime > 0 ? lifetime : 300 };
}

/** The code of a refusal, such as `invalid_grant`; its description may name the account. */
function errorCodeIn(text: string): string {
  const code = /"error"\s*:\s*"([a-z_]{1,40})"/.exec(text)?.[1];
  return code === undefined ? '' : ` (${code})`;
}

/** The file in which `gcloud` stores the credentials of a developer. */
export function wellKnownFile(): string | undefined {
  const file = join(homedir(), '.config', 'gcloud', 'application_default_credentials.json');
  return existsSync(file) ? file : undefined;
}

/** A token from the metadata server of the platform's own machines. Never through a proxy, since that server is local to the machine. */
export async function metadataToken(signal: AbortSignal): Promise<Token> {
  const answer = await fetch('http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token', {
    headers: { 'metadata-flavor': 'Google' },
    redirect: 'error',
    signal,
  });
  if (!answer.ok) throw refused(answer.status, await answer.text());
  return tokenIn(await answer.bytes());
}
