import type { Endpoint, ProviderRequest } from './attempt.ts';

/** A request other than a conversation, such as embeddings. It is encoded before it is tried, and refusals teach nothing about it. */
export interface OperationRequest extends ProviderRequest {
  readonly operation: string;
}

export type OperationEndpoint = Endpoint<OperationRequest, OperationRequest, never>;

/** The common part of such endpoints. */
export const asWritten: Pick<OperationEndpoint, 'quirks' | 'encode' | 'learn'> = {
  quirks: { of: () => undefined, keep: () => {}, lesson: () => undefined },
  encode: (request) => request,
  learn: () => undefined,
};
