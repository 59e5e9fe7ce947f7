import type { Answer, Asker, Visited } from './visitors.ts';

/** A browser in which somebody has signed in: it has the cookie, and says that its requests come from a page of the server. */
export interface Browser {
  /** `name=text` */
  readonly cookie: string;
  readonly ask: Asker;
  /** The answer to the sign-in. */
  readonly answer: Answer;
}

/** What an answer has the browser keep: `name=text`, and the words behind it. */
export function cookieIn({ headers }: Pick<Answer, 'headers'>): { readonly pair: string; readonly words: readonly string[] } {
  const [pair = '', ...words] = (headers.getSetCookie()[0] ?? '').split('; ');
  return { pair, words };
}

export async function browser(all: Visited, email: string, password: string): Promise<Browser> {
  const answer = await all.nobody('POST', '/server/session', { email, password });
  return withCookie(all, answer);
}

export function withCookie({ nobody, server }: Visited, answer: Answer): Browser {
  const { pair: cookie } = cookieIn(answer);
  return {
    cookie,
    answer,
    ask: (method, path, body, { headers = {} } = {}) => nobody(method, path, body, { headers: { cookie, origin: server.url, ...headers } }),
  };
}
