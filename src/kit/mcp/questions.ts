import { AsyncLocalStorage } from 'node:async_hooks';
import type * as Sdk from '@modelcontextprotocol/client';
import type { RequestOptions } from '@modelcontextprotocol/client';
import { isRecord } from './definitions.ts';
import { elicitationIn, type Elicit, type Elicitation, type ElicitedAnswer } from './elicitation.ts';
import { callMilliseconds, patienceMilliseconds } from './exchanges.ts';
import type { McpResult } from './result.ts';

interface Call {
  readonly elicit: Elicit;
  readonly signal: AbortSignal;
}

interface Asking extends Call {
  /** Aborted when the call takes too long. */
  readonly over: AbortController;
  readonly ended: AbortController;
  /** Those of its questions that have no answer yet. */
  readonly open: Set<Promise<ElicitedAnswer>>;
  readonly rest: { asked: number; waiting: number; waited: number; since: number; from: number; cancel: () => void };
}

/** What the server of a connection asks the users of its calls. */
export interface Questions {
  /**
   * Makes a call that may ask. The time in which its user is asked is not that of the call: ten minutes for all its questions, then they end with `cancel`.
   * One that has waited for its user and then takes too long has a result that says so: nothing is wrong with its server for others.
   */
  within(call: Call, made: (options: RequestOptions) => Promise<McpResult>): Promise<McpResult>;
  /** @throws ProtocolError for a question that no user is asked */
  ask(params: unknown, signal: AbortSignal): Promise<{ action: ElicitedAnswer['action']; content?: Record<string, string> }>;
}

const tooLate: McpResult = { text: 'The tool asked its user something, and then did not answer in time. Whether it took effect is not known.', isError: true };

/** Questions of one call, and addresses that it needs visited before it is made again. */
const [mostQuestions, mostAddresses] = [10, 3];

export function openQuestions(sdk: typeof Sdk): Questions {
  // a question comes with the answer to its call, where the server keeps to that; else it is of the only group that has calls
  const current = new AsyncLocalStorage<Asking>();
  const calls = new Set<Asking>();

  /** Never rejects: why a user cannot be asked is nothing for the server. */
  async function asked(call: Asking, question: Elicitation, signal: AbortSignal): Promise<ElicitedAnswer> {
    const left = patienceMilliseconds - waitedOf(call);
    if (++call.rest.asked > mostQuestions || left <= 0) return { action: 'cancel' };
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), left).unref();
    const ends = [...calls].filter(({ elicit }) => elicit.group === call.elicit.group).map(waiting);
    const answer = call.elicit(question, AbortSignal.any([signal, call.signal, call.over.signal, call.ended.signal, late.signal]));
    call.open.add(answer);
    try {
      return await answer;
    } catch {
      return { action: 'cancel' };
    } finally {
      clearTimeout(timer);
      call.open.delete(answer);
      for (const end of ends) end();
    }
  }

  /** The last call, where all are of one group. */
  function likely(): Asking | undefined {
    const [first, ...rest] = calls;
    return rest.every(({ elicit }) => elicit.group === first?.elicit.group) ? (rest.at(-1) ?? first) : undefined;
  }

  /** Asks the user to visit the addresses without which a call is not made. */
  async function visited(call: Asking, error: unknown): Promise<boolean> {
    const wanted = error instanceof sdk.UrlElicitationRequiredError ? error.elicitations : [];
    if (wanted.length === 0 || wanted.length > mostAddresses) return false;
    for (const one of wanted) {
      const question = elicitationIn({ ...one, mode: 'url' });
      if (!question || (await asked(call, question, call.signal)).action !== 'accept') return false;
    }
    return true;
  }

  return {
    async within({ elicit, signal }, made) {
      const over = new AbortController();
      const rest = { asked: 0, waiting: 0, waited: 0, since: performance.now(), from: 0, cancel: () => {} };
      const call: Asking = { elicit, signal, over, ended: new AbortController(), open: new Set(), rest };
      plan(call);
      calls.add(call);
      const most = callMilliseconds + patienceMilliseconds;
      const options = { signal: AbortSignal.any([signal, over.signal]), timeout: most, maxTotalTimeout: most, resetTimeoutOnProgress: false };
      try {
        return await current.run(call, async () => {
          try {
            return await made(options);
          } catch (error) {
            if (!(await visited(call, error))) throw error;
            return made(options);
          }
        });
      } catch (error) {
        const isLate = over.signal.aborted || (error instanceof sdk.SdkError && error.code === sdk.SdkErrorCode.RequestTimeout);
        if (!isLate || signal.aborted) throw error;
        if (call.rest.asked > 0 || waitedOf(call) > 0) return tooLate;
        throw over.signal.aborted ? over.signal.reason : error;
      } finally {
        calls.delete(call);
        call.ended.abort(new Error('The call has ended.'));
        await Promise.allSettled(call.open); // nobody is asked any more when the call is over
        call.rest.cancel();
      }
    },
    async ask(params, signal) {
      const call = current.getStore() ?? likely();
      const question = elicitationIn(params);
      if (!question) throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, 'This is no question that a user is asked.');
      if (!call || !calls.has(call)) return { action: 'cancel' };
      const { action, content } = await asked(call, question, signal);
      // the library has its own type for the values of a form, which were checked where the user answered
      return action === 'accept' && question.schema ? { action, content: { ...(content as Record<string, string>) } } : { action };
    },
  };
}

/** Ends the call when it has taken its time, without that of its user. */
function plan({ over, rest }: Asking): void {
  const left = Math.max(0, callMilliseconds - (performance.now() - rest.since - rest.waited));
  const timer = setTimeout(() => over.abort(new Error('The call timed out.')), left).unref();
  rest.cancel = () => clearTimeout(timer);
}

/** @returns what ends the wait */
function waiting(call: Asking): () => void {
  const { rest } = call;
  if (rest.waiting++ === 0) {
    rest.from = performance.now();
    rest.cancel();
  }
  return () => {
    if (--rest.waiting > 0) return;
    rest.waited += performance.now() - rest.from;
    if (!call.ended.signal.aborted) plan(call);
  };
}

/** Milliseconds in which a user was asked. */
const waitedOf = ({ rest }: Asking): number => rest.waited + (rest.waiting > 0 ? performance.now() - rest.from : 0);

/** A message of a server whose questions are small and flat, before the library reads it: one that is not is left without what it asks. */
export function askable(message: unknown): unknown {
  if (!isRecord(message)) return message;
  if (message['method'] === 'elicitation/create') return { ...message, params: askableParams(message['params']) };
  const { result } = message;
  if (!isRecord(result) || !isRecord(result['inputRequests'])) return message;
  const some = Object.entries(result['inputRequests']).slice(0, mostQuestions);
  const bounded = some.map(([name, one]) => [name, isRecord(one) && one['method'] === 'elicitation/create' ? { ...one, params: askableParams(one['params']) } : one]);
  return { ...message, result: { ...result, inputRequests: Object.fromEntries(bounded) as object } };
} // prettier-ignore

function askableParams(params: unknown): object {
  const question = elicitationIn(params);
  const { elicitationId: id } = isRecord(params) ? params : {};
  if (!question) return { mode: 'form' };
  const { message, schema, url } = question;
  return schema ? { mode: 'form', message, requestedSchema: schema } : { mode: 'url', message, url, elicitationId: typeof id === 'string' ? id.slice(0, 200) : '' };
} // prettier-ignore
