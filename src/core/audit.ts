/** Who changes something, as the audit trail names them. */
export interface Actor {
  /** 0: whoever works on the machine itself. */
  readonly userId: number;
  readonly keyId: number;
  /** Null where it was done without a request, and so from no address. */
  readonly requestId: string | null;
  readonly address: string | null;
}

/** A change that an administrator made. */
export interface AuditEvent {
  readonly by: Actor;
  /** The kind of thing and what was done to it: `user.change`. */
  readonly action: `${string}.${string}`;
  readonly target: { readonly kind: string; readonly id: string | number | null };
  /** As administrators are shown it, so without secrets; absent: it was not there. */
  readonly before?: object | undefined;
  /** Absent: it is gone. */
  readonly after?: object | undefined;
}
