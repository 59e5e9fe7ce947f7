/* What has no period, requests and tokens of a minute and streams that run, held against what the world saw at each moment. */
import type { Book, Owner } from '#core/account';
import type { Plan } from '#core/plan';
import { steps } from '#core/steps';
import type { CallJournal } from '../../src/ledger/journal/journal.ts';
import type { Began } from '../../src/ledger/journal/record.ts';
import { nameOf, route, type Asked } from './clients.ts';
import type { Life, World } from './world.ts';

export interface MomentsDeps {
  readonly world: World;
  readonly calls: ReadonlyMap<string, Asked>;
  /** The limits of a user, a team or a key. */
  readonly limitsOf: (owner: Owner) => Plan;
  readonly problems: string[];
}

const minute = 60_000;

/** A call that may use permits. */
interface Running {
  readonly books: readonly Limited[];
  readonly isStream: boolean;
  readonly hasMaximum: boolean;
  readonly life: Life;
}

/** What is limited for a moment: all that an owner does, or of it what one model is asked. */
interface Limited {
  readonly book: Book;
  readonly requestsPerMinute?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  readonly concurrentStreams?: number | undefined;
}

/** What an owner or a model of it has used: when, and so much of it. */
interface Used {
  readonly at: number;
  readonly amount: number;
}

/** Looks at what is written to each journal: what begins and ends in any process. */
export function watchMoments({ world, calls, limitsOf, problems }: MomentsDeps): (journal: CallJournal, life: Life) => CallJournal {
  const running = new Map<string, Running>();
  const uses = new Map<string, Used[]>();
  /** Notes a use. @returns what was used in the last minute, with it */
  const used = (what: string, amount: number) => {
    const recent = [...(uses.get(what) ?? []).filter(({ at }) => at > world.passed - minute), { at: world.passed, amount }];
    uses.set(what, recent);
    return recent.reduce((sum, one) => sum + one.amount, 0);
  };
  const streamsOf = (book: Book) =>
    [...running.values()].filter((one) => one.isStream && one.life.isAlive && one.books.some((its) => its.book === book)).length;

  return (journal, life) => ({
    began(call, open) {
      const done = journal.began(call, open);
      if (!life.isAlive) return done;
      const name = nameOf(call);
      const { stream, max } = calls.get(name)!;
      const books = limitedIn(call, limitsOf);
      const isNew = call.step % steps.take.each === 0; // further steps of a request take no permit
      running.set(name, { books, isStream: stream && isNew, hasMaximum: max !== undefined, life });
      done.catch(() => running.delete(name)); // no disk took it: it never began
      for (const { book, requestsPerMinute = Infinity, concurrentStreams = Infinity } of books) {
        const requests = isNew ? used(`${book} requests`, 1) : 0;
        if (requests > requestsPerMinute) problems.push(`${book} made ${requests} requests in a minute that has ${requestsPerMinute}, ${name} by ${life.name}`);
        const streams = stream && isNew ? streamsOf(book) : 0;
        if (streams > concurrentStreams) problems.push(`${book} has ${streams} streams of ${concurrentStreams}, ${name} by ${life.name}`);
      }
      return done;
    },
    spoke: (requestId, step, tokens) => journal.spoke(requestId, step, tokens),
    settled(row) {
      const name = nameOf(row);
      const call = running.get(name);
      running.delete(name);
      for (const { book, tokensPerMinute = Infinity } of (life.isAlive && call?.books) || []) {
        const tokens = used(`${book} tokens`, row.planTokens);
        // A full minute ends no answer: one without a maximum may say all that its model can.
        const beyond = used(`${book} beyond`, call!.hasMaximum ? 0 : route.output);
        if (tokens > tokensPerMinute + beyond) problems.push(`${book} used ${tokens} tokens in a minute that has ${tokensPerMinute}, ${name} by ${life.name}`);
      }
      return journal.settled(row);
    },
    get trouble() {
      return journal.trouble;
    },
  });
}

function limitedIn({ userId, teamIds, keyId, model }: Began, limitsOf: MomentsDeps['limitsOf']): readonly Limited[] {
  const owners: readonly Owner[] = [`user:${userId}`, `key:${keyId}`, ...teamIds.map((team): Owner => `team:${team}`)];
  return owners.flatMap((owner): Limited[] => {
    const { requestsPerMinute, tokensPerMinute, concurrentStreams, modelLimits = {} } = limitsOf(owner);
    const ofModel = modelLimits[model];
    return [
      { book: owner, requestsPerMinute, tokensPerMinute, concurrentStreams },
      ...(ofModel ? [{ book: `${owner}/${model}` as const, requestsPerMinute: ofModel.requestsPerMinute }] : []),
    ];
  });
}
