/** The actor of a change, as the audit trail names it. */
export interface Actor {
  /** 0: the operator on the machine itself. */
  readonly userId: number;
  readonly keyId: number;
  /** Null for a change made without a request, which has no client address. */
  readonly requestId: string | null;
  readonly address: string | null;
}

/** A change made by an administrator. */
export interface AuditEvent {
  readonly by: Actor;
  /** The kind of object and the action: `user.change`. */
  readonly action: `${string}.${string}`;
  readonly target: { readonly kind: string; readonly id: string | number | null };
  /** The state before the change, as shown to administrators, so without secrets; absent: the object did not exist. */
  readonly before?: object | undefined;
  /** The state after the change; absent: the object was deleted. */
  readonly after?: object | undefined;
}
