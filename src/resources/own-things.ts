import type { Static, TObject } from 'typebox';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';
import { idIn, nounRoute, type NounRoute } from '#http/noun-route';
import type { Scope } from '#http/route';
import { closed } from '#http/schemas';
import type { Reader } from '#store/grants';
import { ownerOf, ownerQuery, readerOf } from './owner.ts';
import type { OwnRows } from './own-rows.ts';
import { pageById, pageQuery, pageSchema } from './pagination.ts';
import { grantRoutes, type Sharing } from './sharing.ts';

export const ownQuery = closed(ownerQuery);

export interface OwnAsked {
  readonly caller: Caller;
  readonly by: Actor;
  /** By whose rights things are looked at. */
  readonly reader: Reader;
  /** Whose a new thing is. @throws Fault `not-found` */
  readonly owner: number;
  readonly signal: AbortSignal;
}

/** A kind of thing that users make, share, replace and delete. */
export interface OwnThings<Thing extends { readonly id: number }, Fields extends TObject, Shown extends TObject> {
  /** The last part of their address: `personas`. */
  readonly noun: string;
  /** One of them, in words: `persona`. */
  readonly what: string;
  readonly scope: Scope | 'unscoped';
  readonly input: Fields;
  readonly output: Shown;
  readonly summaries: Readonly<Record<'list' | 'make' | 'one' | 'replace' | 'remove', string>>;
  readonly shown: (thing: Thing) => Static<Shown>;
  readonly rows: Pick<OwnRows<Thing>, 'list' | 'one' | 'administered'>;
  readonly make: (input: Static<Fields>, asked: OwnAsked) => Promise<Thing>;
  readonly replace: (id: number, input: Static<Fields>, asked: OwnAsked) => Promise<Thing>;
  readonly remove: (id: number, asked: OwnAsked) => Promise<Thing>;
  readonly sharing: Sharing;
  /** As of `grantRoutes`. */
  readonly mayGiveToEverybody?: (caller: Caller) => boolean;
}

/** The routes of such things: the list, one of them, making, replacing, deleting, and who else may use one. */
export function ownThingRoutes<Thing extends { readonly id: number }, Fields extends TObject, Shown extends TObject>(
  things: OwnThings<Thing, Fields, Shown>,
): readonly NounRoute[] {
  const { noun, what, scope, input, output, summaries, shown, rows, sharing } = things;
  const root = `/server/mine/${noun}`;
  const path = `${root}/:id`;
  const common = { scope, owner: 'caller', output, query: ownQuery } as const;
  const idOf = (params: Readonly<Record<string, string>>) => idIn(params, 'id', what);
  return [
    nounRoute('GET', root, {
      ...common,
      summary: summaries.list,
      query: closed({ ...ownerQuery, ...pageQuery }),
      output: pageSchema(output),
      answer({ caller, query: asked }) {
        const reader = readerOf(caller, asked);
        return pageById(noun, asked, (after, limit) => rows.list(reader, { after, limit }), shown);
      },
    }),
    nounRoute('POST', root, {
      ...common,
      summary: summaries.make,
      input,
      makes: true,
      answer: async (request) => shown(await things.make(request.input, askedIn(request))),
    }),
    nounRoute('GET', path, {
      ...common,
      summary: summaries.one,
      answer: async ({ caller, params, query }) => shown(await rows.one(readerOf(caller, query), idOf(params))),
    }),
    nounRoute('PUT', path, {
      ...common,
      summary: summaries.replace,
      input,
      answer: async (request) => shown(await things.replace(idOf(request.params), request.input, askedIn(request))),
    }),
    nounRoute('DELETE', path, {
      ...common,
      summary: summaries.remove,
      answer: async (request) => shown(await things.remove(idOf(request.params), askedIn(request))),
    }),
    ...grantRoutes({
      sharing,
      scope,
      path,
      what,
      administered: (caller, params, query) => rows.administered(readerOf(caller, query), idOf(params)),
      mayGiveToEverybody: things.mayGiveToEverybody,
    }),
  ];
}

interface Request {
  readonly caller: Caller;
  readonly by: Actor;
  readonly query: Static<typeof ownQuery>;
  readonly signal: AbortSignal;
}

const askedIn = ({ caller, by, query, signal }: Request): OwnAsked => ({
  caller,
  by,
  reader: readerOf(caller, query),
  owner: ownerOf(caller, query),
  signal,
});
