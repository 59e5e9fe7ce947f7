import type { Static, TObject, TSchema } from 'typebox';
import { checked, type Problem } from '#kit/json/check';
import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import type { GenerateCall } from '#core/call';
import type { Caller, Choices, Context } from '#core/context';
import type { GenerateResult } from '#core/fold';
import type { Generate } from '#core/generate';
import type { Speak, SpeakCall } from '#core/speak';
import { valueIn } from '#kit/json/value-in';
import { coerced } from './coerce.ts';
import type { Headers } from './headers.ts';
import { namingUnstorable } from './unstorable-text.ts';
import type { Route } from './route.ts';
import type { UploadedFile } from './uploads.ts';

/**
 * A route of a noun: it answers with a value, `Accepted`, `Bytes`, `WithSession`, `Updates` or an async iterable, and knows nothing of the connection. A face decides in which words it
 * is spoken to, and how updates are framed.
 */
export interface NounRoute extends Omit<Route, 'answer'> {
  /** What comes in is checked here. @throws Fault `invalid` naming the field, and what the noun throws */
  answer(asked: PlainAsked): unknown;
}

/** An answer that is no JSON: a sound, an original file, a table. */
export class Bytes {
  readonly contentType: string;
  /** Whole, or piece by piece. */
  readonly content: Uint8Array | string | AsyncIterable<Uint8Array | string>;
  /** Such as `content-disposition`. */
  readonly headers: Headers;

  constructor(contentType: string, content: Bytes['content'], headers: Headers = []) {
    this.contentType = contentType;
    this.content = content;
    this.headers = headers;
  }
}

/** What goes on behind the answer, which is 202. */
export class Accepted {
  readonly value: object;

  constructor(value: object) {
    this.value = value;
  }
}

/** What begins or ends a session: the face sends its cookie along. */
export class WithSession {
  readonly value: object;
  /** What the cookie holds; empty: the session is over. */
  readonly text: string;

  constructor(value: object, text: string) {
    this.value = value;
    this.text = text;
  }
}

/** What becomes of a question: its call is made by the face that it came through, which sends the answer whole or as it comes. */
export class Conversation {
  /** The face sets `stream`. */
  readonly call: GenerateCall;
  readonly generate: Generate;
  /** Whether the answer is to come as a stream; absent: as the client accepts it. */
  readonly streams?: boolean;
  /** The application, where the request names it. */
  readonly app?: string;
  /** The answer as it is sent, when it is complete; it may be stored first. */
  readonly whole: (result: GenerateResult, context: Context) => Promise<object>;
  /** Stands before the text of the answer, and is in `soFar` too. */
  readonly before: string;
  /** What is sent of an answer that has come so far. */
  readonly soFar: (text: string) => object;

  constructor({ call, generate, streams, app, before = '', whole, soFar }: ConversationDeps) {
    this.call = call;
    this.generate = generate;
    if (streams !== undefined) this.streams = streams;
    if (app !== undefined) this.app = app;
    this.before = before;
    this.whole = whole;
    this.soFar = soFar;
  }
}

interface ConversationDeps extends Pick<Conversation, 'call' | 'generate' | 'whole' | 'soFar'> {
  readonly streams?: boolean | undefined;
  readonly app?: string | undefined;
  readonly before?: string;
}

/** A text that is to be spoken: the call is made by the face that it came through, which sends the sound as it comes. */
export class Speech {
  readonly call: SpeakCall;
  readonly speak: Speak;
  /** What the client calls fields of the call, where it has other names for them. */
  readonly fieldNames: Readonly<Record<string, string>>;
  /** The application, where the request names it. */
  readonly app?: string;

  constructor({ call, speak, fieldNames = {}, app }: SpeechDeps) {
    this.call = call;
    this.speak = speak;
    this.fieldNames = fieldNames;
    if (app !== undefined) this.app = app;
  }
}

interface SpeechDeps extends Pick<Speech, 'call' | 'speak'> {
  readonly fieldNames?: Speech['fieldNames'];
  readonly app?: string | undefined;
}

/** How updates are framed in the native interface: server-sent events, or plain text, in which a delimiter stands between two objects. */
export type Framing = 'events' | 'text';

/** What happens, told as it happens: server-sent events, or what the client of the native interface asks for. */
export class Updates {
  readonly updates: AsyncIterable<Update>;
  /** The last update where telling them fails: the server shuts down, or the client may not hear more. */
  readonly failed: (fault: Fault) => Update;
  /** For a client of the native interface that asks for neither. */
  readonly usual: Framing;

  constructor(updates: AsyncIterable<Update>, failed: Updates['failed'], usual: Framing = 'events') {
    this.updates = updates;
    this.failed = failed;
    this.usual = usual;
  }
}

export interface Update {
  /** A client that comes back says which it had last (`Last-Event-ID`). */
  readonly id?: number;
  readonly event: string;
  readonly value: object;
}

/** An update as a server-sent event. */
export const eventText = ({ id, event, value }: Update): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(value)}\n\n`;

export const isUpdates = (answer: unknown): answer is AsyncIterable<unknown> => typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;

/** An unchecked request, whichever its route. */
export interface PlainAsked {
  readonly caller: Caller;
  readonly by: Actor;
  /** The words of the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The parsed body, or the fields of a form; `undefined` when there is none. */
  readonly json: unknown;
  /** Files of a form, until the request is answered. */
  readonly files?: readonly UploadedFile[];
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortSignal;
  /** The header `Last-Event-ID`: the last update that the client has. */
  readonly lastEventId?: string;
  /** How the header `Accept` asks for updates, in the native interface. */
  readonly framing?: Framing;
  /** Of routes that spend. */
  readonly choices?: Choices;
}

interface Described<Query extends TObject, Input extends TSchema> extends Omit<Route, 'method' | 'path' | 'answer' | 'query' | 'input'> {
  readonly query?: Query;
  readonly input?: Input;
  /** No body is read as `{}`. */
  readonly inputMayBeLeftOut?: true;
  readonly answer: (asked: Understood<Query, Input>) => unknown;
}

interface Understood<Query extends TObject, Input extends TSchema> extends Pick<
  PlainAsked,
  'caller' | 'by' | 'params' | 'lastEventId' | 'framing' | 'choices'
> {
  readonly query: Static<Query>;
  readonly input: Static<Input>;
  readonly files: readonly UploadedFile[];
  readonly signal: AbortSignal;
}

/** `nounRoute('POST', '/server/admin/users', { …, input: NewUser, answer: ({ input }) => users.add(input) })` */
export function nounRoute<Query extends TObject = TObject, Input extends TSchema = TObject>(
  method: Route['method'],
  path: string,
  described: Described<Query, Input>,
): NounRoute {
  const { query, input, inputMayBeLeftOut, answer } = described;
  const queryOf = query && checked(query, refusal);
  const inputOf = input && checked(input, bodyRefusal);
  return {
    ...described,
    method,
    path,
    async answer({ caller, by, params, query: search, json, files = [], signal = new AbortController().signal, lastEventId, framing, choices }) {
      if (Object.values(params).some((word) => word.includes('\0'))) throw new Fault('not-found', 'There is nothing at this address.'); // no id or name has it, and PostgreSQL takes no such text
      const nothing = {} as Static<Query> & Static<Input>; // where no schema was given there is nothing to know
      const words = query && queryOf ? queryOf(wordsOf(search, query)) : nothing;
      const fields = inputOf ? inputOf(inputMayBeLeftOut && json === undefined ? {} : present(json)) : nothing;
      const more = { ...(lastEventId === undefined ? {} : { lastEventId }), ...(framing ? { framing } : {}), ...(choices ? { choices } : {}) };
      try {
        return await answer({ caller, by, params, files, signal, ...more, query: words, input: fields });
      } catch (error) {
        throw namingUnstorable(error, [
          { schema: query, value: words },
          { schema: input, value: fields },
        ]);
      }
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
export const unknownThing = (what: string): Fault => new Fault('not-found', `There is no such ${what}.`);

const longest = 300;

/** An unknown name may be a megabyte long: it is not repeated. */
function refusal({ field, message, missing, known = [] }: Problem): Fault {
  const short = message.length > longest ? `${message.slice(0, longest)}…` : message;
  const others = known.length > 0 ? ` Known: ${known.join(', ')}.` : '';
  return new Fault('invalid', short + others, { field, ...(missing ? { reason: 'missing' as const } : {}) });
}

const bodyRefusal = (problem: Problem): Fault =>
  refusal(problem.field === '' ? { ...problem, message: problem.message.replace(/^The value/, 'The body') } : problem);

function present(json: unknown): unknown {
  if (json === undefined) throw new Fault('invalid', 'A JSON body is needed.', { reason: 'missing' });
  return json;
}

/** The words behind the `?`, as the values that the schema wants. The credential that may stand there is not ours. */
function wordsOf(search: URLSearchParams, schema: TObject): Record<string, unknown> {
  const words = Array.from(search).filter(([name]) => name !== 'key' || Object.hasOwn(schema.properties, name));
  return coerced(words, schema, valueIn);
}
