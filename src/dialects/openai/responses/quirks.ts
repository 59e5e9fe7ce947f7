/** How a provider's model differs from the others of this wire. */
export interface Quirks {
  /** False: it gives no encrypted thoughts and refuses to be asked for them. */
  readonly encrypted?: boolean;
}
