import type { Static, TObject, TSchema } from 'typebox';
import { checked, type Problem } from '#kit/json/check';
import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { Route } from './route.ts';

/** A route of a noun: it answers with a value and knows nothing of the connection. A face decides in which words it is spoken to. */
export interface NounRoute extends Omit<Route, 'answer'> {
  /** What comes in is checked here. @throws Fault `invalid` naming the field, and what the noun throws */
  answer(asked: PlainAsked): unknown;
}

/** A request as it came, wherever it came from. */
export interface PlainAsked {
  readonly caller: Caller;
  readonly by: Actor;
  /** The words of the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The parsed body; `undefined` when there is none. */
  readonly json: unknown;
}

interface Described<Query extends TObject, Input extends TSchema> extends Omit<Route, 'answer' | 'query' | 'input'> {
  readonly query?: Query;
  readonly input?: Input;
  readonly answer: (asked: { caller: Caller; by: Actor; params: Readonly<Record<string, string>>; query: Static<Query>; input: Static<Input> }) => unknown;
}

/** `nounRoute({ method: 'POST', path: '/server/admin/users', …, input: NewUser, answer: ({ input }) => users.add(input) })` */
export function nounRoute<Query extends TObject = TObject, Input extends TSchema = TObject>(described: Described<Query, Input>): NounRoute {
  const { query, input, answer } = described;
  const queryOf = query && checked(query, refusal);
  const inputOf = input && checked(input, refusal);
  return {
    ...described,
    answer({ caller, by, params, query: search, json }) {
      const nothing = {} as Static<Query> & Static<Input>; // where no schema was given there is nothing to know
      return answer({
        caller,
        by,
        params,
        query: query && queryOf ? queryOf(wordsOf(search, query)) : nothing,
        input: inputOf ? inputOf(present(json)) : nothing,
      });
    },
  };
}

/** The integer id in a path. @throws Fault `not-found` where it is not an id */
export function idIn(params: Readonly<Record<string, string>>, name: string, what: string): number {
  const text = params[name] ?? '';
  if (!/^[1-9]\d{0,14}$/.test(text)) throw unknownThing(what);
  return Number(text);
}

/** For an id behind which nothing stands. */
export function unknownThing(what: string): Fault {
  return new Fault('not-found', `There is no such ${what}.`);
}

const longest = 300;

/** An unknown name may be a megabyte long: it is not repeated. */
const refusal = ({ field, message, missing }: Problem) =>
  new Fault('invalid', message.length > longest ? `${message.slice(0, longest)}…` : message, { field, ...(missing ? { reason: 'missing' as const } : {}) });

function present(json: unknown): unknown {
  if (json === undefined) throw new Fault('invalid', 'A JSON body is needed.', { reason: 'missing' });
  return json;
}

/** The words behind the `?`, numbers where the schema wants some. The credential that may stand there is not ours. */
function wordsOf(search: URLSearchParams, schema: TObject): Record<string, unknown> {
  const words = new Map<string, unknown>();
  for (const [name, text] of search) {
    if (name === 'key' && !Object.hasOwn(schema.properties, name)) continue;
    if (words.has(name)) throw new Fault('invalid', `${name.slice(0, 100)} is given more than once.`, { field: name });
    const isNumber = Object.hasOwn(schema.properties, name) && (schema.properties[name] as { type?: string }).type === 'integer';
    words.set(name, isNumber && /^-?\d{1,15}$/.test(text) ? Number(text) : text);
  }
  return Object.fromEntries(words);
}
