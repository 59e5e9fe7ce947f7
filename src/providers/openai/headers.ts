import type { RequestHeaders } from '../shared/credentials.ts';

/** The headers of every request to a provider of OpenAI's APIs. Azure has a header of its own for the key. @param configured those of the settings */
export const headersOf =
  (kind: string | undefined, configured: RequestHeaders) =>
  (key: string | undefined): RequestHeaders => ({
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    ...(key === undefined ? {} : kind === 'azure' ? { 'api-key': key } : { authorization: `Bearer ${key}` }),
    ...configured,
  });
