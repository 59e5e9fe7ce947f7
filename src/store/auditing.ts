import type { AuditEvent } from '#core/audit';
import type { Access } from '#store/open';

/** Writes a change into the audit trail, in the transaction that makes it. The trail is a noun of its own, which the others do not know. */
export type Audit = (inside: Access, event: AuditEvent) => Promise<void>;
