import { Fault } from '#core/fault';

export interface JournalTroubleDeps {
  readonly log: (problem: string, cause: unknown) => void;
  /** Called when the last problem is solved. */
  readonly mended: (what: string) => void;
}

const retryAfterSeconds = 5;

/** What is wrong with a journal at the moment, by what failed. The first problem and the end of the last one are logged. */
export class JournalTrouble {
  readonly #deps: JournalTroubleDeps;
  readonly #problems = new Map<string, unknown>();

  constructor(deps: JournalTroubleDeps) {
    this.#deps = deps;
  }

  get isAny(): boolean {
    return this.#problems.size > 0;
  }

  has(what: string): boolean {
    return this.#problems.has(what);
  }

  failed(what: string, cause: unknown): void {
    if (!this.isAny) this.#deps.log(`The journal cannot be written, and calls that spend are refused: ${what}.`, cause);
    this.#problems.set(what, cause);
  }

  mended(what: string): void {
    if (this.#problems.delete(what) && !this.isAny) this.#deps.mended('The journal can be written again.');
  }

  /** The fault of calls that may not begin. */
  get fault(): Fault {
    const [[what, cause] = ['records wait', undefined]] = this.#problems;
    return new Fault('overloaded', 'Usage cannot be recorded right now.', { retryAfter: retryAfterSeconds, unbegun: true, cause: cause ?? what });
  }
}
