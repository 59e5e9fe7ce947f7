/** What a scripted vendor is: its wires, the rules by which it refuses, and how it words a refusal. */
import type { Saying } from '../upstream/good.ts';
import type { Wire } from '../upstream/wire.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a body is looked at as it came: a rule is there to find what is wrong with it
export type Any = any;

export type WireName = 'chat' | 'responses' | 'messages' | 'gemini';

/** A request, as a rule sees it. */
export interface Ask {
  readonly wire: WireName;
  readonly model: string;
  readonly body: Any;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Why a request is refused, in the vendor's words. */
export interface Refusal {
  readonly message: string;
  /** 400 unless said. */
  readonly status?: number;
  readonly param?: string;
  readonly code?: string;
  readonly type?: string;
  /** Members of the error besides these. */
  readonly more?: object;
}

/** What a model hears in a request, whatever the wire. */
export interface Heard {
  /** What the user said last. */
  readonly text: string;
  /** Results of tools that nothing follows. */
  readonly results: readonly string[];
  readonly tools: readonly HeardTool[];
  /** A tool is to be called: which, or any of them. */
  readonly forced?: string | true;
  /** No tool is to be called. */
  readonly forbidden?: true;
  /** The answer is to be JSON, of this schema where there is one. */
  readonly json?: { readonly schema?: Any };
  /** The answer is to be this word, and nothing else. */
  readonly word?: string;
}

export interface HeardTool {
  readonly name: string;
  readonly schema?: Any;
  readonly custom?: true;
  readonly namespace?: string;
}

export interface Rule {
  readonly name: string;
  /** Where it is described: `owner/repo#n` or a URL. */
  readonly source: string;
  /** Why the request is refused; otherwise anything falsy. A bare text is the message of a 400. */
  readonly refuses: (ask: Ask) => Refusal | string | false | null | undefined;
}

export interface Vendor {
  readonly name: string;
  readonly wires: Readonly<Partial<Record<WireName, Spoken>>>;
  /** The body of a refusal. */
  fault(status: number, refusal: Refusal): object;
}

/** How a vendor speaks a wire. */
export interface Spoken {
  readonly wire: Wire;
  /** In the order in which it looks. */
  readonly rules: readonly Rule[];
  /** What its answer has besides text and calls: thoughts, signatures. */
  says?(ask: Ask, heard: Heard): Saying;
  /** The id of the call with this number, where it is not as OpenAI's. */
  callId?(name: string, number: number): string;
}

export const rule = (name: string, source: string, refuses: Rule['refuses']): Rule => ({ name, source, refuses });

/** The first rule that refuses, and its words. */
export function refusedBy(rules: readonly Rule[], ask: Ask): { readonly rule: Rule; readonly refusal: Refusal } | undefined {
  for (const one of rules) {
    const refusal = one.refuses(ask);
    if (refusal) return { rule: one, refusal: typeof refusal === 'string' ? { message: refusal } : refusal };
  }
  return undefined;
}

/** What each gives, up to the first that gives something. */
export function first<Item, Found>(
  items: Iterable<Item> | null | undefined,
  look: (item: Item, at: number) => Found | false | null | undefined | '',
): Found | undefined {
  let at = 0;
  for (const item of items ?? []) {
    const found = look(item, at++);
    if (found) return found;
  }
  return undefined;
}

export const list = (value: unknown): Any[] => (Array.isArray(value) ? value : []);
export const has = (value: unknown): boolean => value !== undefined && value !== null;
/** `'a', 'b', and 'c'` */
export const named = (words: readonly string[]): string =>
  words.length < 2
    ? `'${words.join()}'`
    : `${words
        .slice(0, -1)
        .map((one) => `'${one}'`)
        .join(', ')}, and '${words.at(-1)}'`;
/** The words of a text. */
export const words = (text: string): readonly string[] => text.trim().split(/\s+/);
