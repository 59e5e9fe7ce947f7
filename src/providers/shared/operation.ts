import type { Endpoint, ProviderRequest } from './attempt.ts';

/** A request for something else than a conversation, such as embeddings. It is written before it is tried, and a refusal teaches nothing about it. */
export interface OperationRequest extends ProviderRequest {
  /** Part of the address. */
  readonly operation: string;
}

export type OperationEndpoint = Endpoint<OperationRequest, OperationRequest, never>;

/** What all such endpoints have in common. */
export const asWritten: Pick<OperationEndpoint, 'quirks' | 'encode' | 'learn'> = {
  quirks: { of: () => undefined, keep: () => {} },
  encode: (request) => request,
  learn: () => undefined,
};
