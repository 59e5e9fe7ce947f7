import { page } from '../html.ts';
import type { Asked, Route } from '#http/route';

/** Ends a sign-in at somebody's MCP server with what the authorization server had the browser bring. */
export type SignedIn = (
  came: Readonly<Record<'state' | 'code' | 'iss' | 'error', string | undefined>>,
  from: { readonly requestId: string; readonly address: string | null },
) => Promise<keyof typeof pages>;

/** Neither says whose sign-in it is, nor at which server: anybody may look. */
const pages = {
  connected: [200, 'Signed in', 'The MCP server can be used now. You can close this page.'],
  unknown: [400, 'This sign-in is over', 'It was completed before, took more than ten minutes, or was never begun. Begin again where you began it.'],
  refused: [400, 'Not signed in', 'The sign-in was refused or cancelled. Begin again if you did not mean that.'],
  failed: [502, 'Not signed in', 'The sign-in failed, and nothing was changed. The MCP server in Dragoman says why.'],
  interrupted: [503, 'Not signed in', 'The sign-in could not be completed just now, and nothing was changed. Begin again.'],
} as const;

export const callbackPath = '/server/mcp/oauth/callback';

/** Where the browser of a user comes back to. It carries no credential: nothing is told or changed but what the state stands for. */
export function signInRoute(signedIn: SignedIn): Route {
  return {
    method: 'GET',
    path: callbackPath,
    scope: 'public',
    owner: 'nobody',
    summary: 'Where a sign-in at an MCP server of a user ends: a page.',
    sends: ['text/html'],
    refusesWith: {
      400: 'The sign-in is over or was never begun, or it was refused or cancelled.',
      502: 'The sign-in failed.',
      503: 'The sign-in could not be completed just now.',
    },
    async answer({ exchange }: Asked) {
      const { query, id: requestId, address } = exchange;
      const word = (name: string) => query.get(name) ?? undefined;
      const end = await signedIn({ state: word('state'), code: word('code'), iss: word('iss'), error: word('error') }, { requestId, address });
      const [status, title, text] = pages[end];
      exchange.send(status, htmlHeaders, page(title, `<main><h1>${title}</h1><p>${text}</p></main>`));
    },
  };
}

/** The page loads nothing but its style. */
const htmlHeaders = [
  'content-type',
  'text/html; charset=utf-8',
  'content-security-policy',
  "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
];
