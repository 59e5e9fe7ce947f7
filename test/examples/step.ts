/** A request for each operation of the document, in an order in which each finds what it needs. */
export interface Step {
  readonly operation: string;
  readonly method?: string;
  /** `{name}` is what an earlier answer was said to keep under the name. */
  readonly path: string;
  readonly body?: unknown;
  /** A file that is sent as a form. */
  readonly form?: { readonly name: string; readonly filename: string; readonly text: string; readonly fields?: Readonly<Record<string, string>> };
  /** In place of the first user's key. */
  readonly credential?: string;
  /** It is asked again until its answer is such. */
  readonly until?: (answer: unknown) => boolean;
  /** Where its answer is not such, the step before it is taken again, and then it: that one may have been too quick. */
  readonly wants?: (answer: unknown) => boolean;
  /** Members of the answer that later steps need, by name: `items.0.id`. */
  readonly keeps?: Readonly<Record<string, string>>;
}
