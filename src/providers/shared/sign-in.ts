import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import { Fault } from '#core/fault';
import { orAborted } from '#kit/async/or-aborted';
import { timed } from '#kit/async/timed';
import type { Credential } from './credentials.ts';
import type { CredentialSettings, ProviderSettings } from './provider.ts';
import { fileToken, metadataToken, wellKnownFile, type Token } from './tokens.ts';

/** Seconds before its expiry at which a token is renewed while the old one is still used, and below which callers wait for the new one. */
const renewSeconds = 300;
const leastSeconds = 30;

/** The headers of requests to Google's cloud platform, with the credential of the settings: a key, a token, the file of an account, or the machine's own identity. */
export function signIn({ credentials = {}, headers = {} }: ProviderSettings, upstreams: Upstreams, clock: Clock): Credential {
  const account = accountOf(credentials, upstreams, clock);
  return {
    headers: async (signal) => ({ 'content-type': 'application/json', 'accept-encoding': 'identity', ...(await account.headers(signal)), ...headers }),
    refused: (sent) => account.refused(sent),
    accepted: () => account.accepted?.(),
  };
}

function accountOf(settings: CredentialSettings, upstreams: Upstreams, clock: Clock): Credential {
  const { apiKey, accessToken, serviceAccountFile: file } = settings;
  if (apiKey !== undefined) return { headers: () => ({ 'x-goog-api-key': apiKey }), refused: () => false };
  if (accessToken !== undefined) return { headers: () => bearer(accessToken), refused: () => false };
  return renewed(async (signal) => {
    const source = file ?? wellKnownFile();
    return source === undefined ? metadataToken(signal) : fileToken(source, { upstreams, clock, signal });
  }, clock);
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** One renewal is shared by all callers that wait, and none of them can cancel it for the others. */
export function renewed(fetchToken: (signal: AbortSignal) => Promise<Token>, clock: Clock): Credential {
  let current: HeldToken | undefined;
  let renewing: Promise<HeldToken> | undefined;

  const renew = (): Promise<HeldToken> => (renewing ??= renewal());
  const renewal = (): Promise<HeldToken> =>
    timed({ clock, milliseconds: longestMilliseconds, late: new Fault('upstream-failed', notRenewed) }, fetchToken)
      .then((token) => (current = { ...token, at: clock.monotonic(), worked: false }))
      .catch((error: unknown) => {
        throw new Fault('upstream-failed', notRenewed, { key: true, cause: error });
      })
      .finally(() => {
        renewing = undefined;
      });

  const held = (): HeldToken | undefined => {
    if (!current) return undefined;
    const { seconds, at } = current;
    const left = seconds - (clock.monotonic() - at) / 1000;
    if (left <= leastSeconds) return undefined;
    if (left < Math.min(renewSeconds, seconds / 4)) renew().catch(() => {}); // a failure is reported to the next caller that needs the token
    return current;
  };

  return {
    async headers(signal) {
      const token = held() ?? (await orAborted(renew(), signal));
      return bearer(token.value);
    },
    refused(sent) {
      if (!current || (sent && sent['authorization'] !== bearer(current.value).authorization)) return true; // others were refused with it before
      const { worked } = current;
      current = undefined; // it may have been revoked, or have expired while the machine slept
      return worked;
    },
    accepted() {
      if (current) current.worked = true;
    },
  };
}

interface HeldToken extends Token {
  /** Monotonic milliseconds. */
  readonly at: number;
  /** A request with it was accepted. */
  worked: boolean;
}

const longestMilliseconds = 10_000;
const notRenewed = 'The credentials for the provider could not be renewed.';
