import { requestId } from '#kit/crypto/ids';
import type { UsageRow } from '#core/usage-row';

/** A usage row with the members that a test gives. */
export function usageRow(said: Partial<UsageRow> = {}): UsageRow {
  return {
    requestId: requestId(),
    step: 0,
    at: Date.UTC(2026, 10, 21, 12),
    userId: 1,
    teamIds: [],
    keyId: 1,
    app: 'app',
    face: 'chatcompat',
    model: 'gpt-4o-mini',
    servedModel: 'gpt-4o-mini-2024-07-18',
    provider: 'openai',
    region: '',
    attempts: [{ provider: 'openai', model: 'gpt-4o-mini', milliseconds: 212 }],
    status: 200,
    end: 'completed',
    inputTokens: 7,
    outputTokens: 3,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    thoughtTokens: 0,
    provenance: 'provider',
    planTokens: 10,
    balance: 'inference',
    costUsd: null,
    queueMs: 0.5,
    firstTokenMs: 200,
    totalMs: 300,
    ...said,
  };
}

/** What the journal leaves out of a row where it is so. */
const leftOut: Partial<UsageRow> = {
  teamIds: [],
  region: '',
  cachedTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  thoughtTokens: 0,
  balance: 'inference',
  costUsd: null,
  queueMs: 0,
  firstTokenMs: null,
};

/** A row as the journal or a shipment of it has it, with all its members. */
export const wholeRow = (row: object): UsageRow => ({ ...leftOut, ...(row as UsageRow) });

/** The rows of a shipment. */
export const shippedRows = (rows: Uint8Array): readonly UsageRow[] => (JSON.parse(Buffer.from(rows).toString()) as object[]).map(wholeRow);
