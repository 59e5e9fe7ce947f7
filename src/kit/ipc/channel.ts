/** The requests that one side of a channel answers: a function for each name. */
export type Answers = Readonly<Record<string, (question: never) => unknown>>;

/** The transport of messages between a process and its child. Each message arrives once and in order, or the wire closes. */
export interface Wire {
  /** Drops a message that cannot be sent any more: the wire is closed, or closes now. */
  send(message: object): void;
  onMessage(listen: (message: unknown) => void): void;
  /** Called once. */
  onClose(listen: () => void): void;
}

/** Converts an error to a message, and the message to the error that the other side throws. */
export interface Refusals {
  encode(error: unknown): unknown;
  decode(message: unknown): Error;
  /** The error of a request that can no longer be answered. */
  closed(): Error;
}

/** Sends requests to the other side. `Theirs`: the requests that the other side answers. */
export interface Channel<Theirs extends Answers> {
  /** @throws what the other side threw, by way of `Refusals`; `closed()` when the wire closes before the answer */
  ask<Name extends keyof Theirs & string>(name: Name, ...question: Parameters<Theirs[Name]>): Promise<Awaited<ReturnType<Theirs[Name]>>>;
  /** Sends a request and ignores the answer. */
  tell<Name extends keyof Theirs & string>(name: Name, ...question: Parameters<Theirs[Name]>): void;
}

type Message =
  | { readonly type: 'question'; readonly id: number; readonly name: string; readonly question: unknown }
  | { readonly type: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly type: 'refusal'; readonly id: number; readonly refusal: unknown };

/**
 * Requests and answers in both directions over one wire between two processes of Dragoman; messages are trusted without validation.
 * Requests start in the order in which they were sent; answers may overtake each other.
 */
export function openChannel<Theirs extends Answers>(wire: Wire, mine: Answers, refusals: Refusals): Channel<Theirs> {
  const waiting = new Map<number, PromiseWithResolvers<never>>();
  let last = 0;
  let isClosed = false;
  const send = (message: Message) => wire.send(message);

  const answer = async (id: number, name: string, question: unknown): Promise<void> => {
    try {
      send({ type: 'answer', id, answer: await (mine[name] as (question: unknown) => unknown)(question) });
    } catch (error) {
      send({ type: 'refusal', id, refusal: refusals.encode(error) });
    }
  };

  const answered = (id: number) => {
    const pending = waiting.get(id);
    waiting.delete(id);
    return pending;
  };

  wire.onMessage((received) => {
    const message = received as Message;
    switch (message.type) {
      case 'question':
        void answer(message.id, message.name, message.question);
        break;
      case 'answer':
        answered(message.id)?.resolve(message.answer as never);
        break;
      case 'refusal':
        answered(message.id)?.reject(refusals.decode(message.refusal));
        break;
      default:
        message satisfies never;
    }
  });
  wire.onClose(() => {
    isClosed = true;
    for (const { reject } of waiting.values()) reject(refusals.closed());
    waiting.clear();
  });

  const ask: Channel<Theirs>['ask'] = (name, ...question) => {
    if (isClosed) return Promise.reject(refusals.closed());
    const pending = Promise.withResolvers<never>();
    const id = ++last;
    waiting.set(id, pending);
    send({ type: 'question', id, name, question: question[0] });
    return pending.promise;
  };
  return { ask, tell: (name, ...question) => void ask(name, ...question).catch(() => undefined) };
}
