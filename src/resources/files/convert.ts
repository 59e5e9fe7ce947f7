import type { ConvertDocument } from '#core/document';
import { Fault, type FaultCode } from '#core/fault';
import { ConversionRefused, type Documents, type RefusalReason } from '#kit/documents/index';

const codes: Readonly<Record<RefusalReason, FaultCode>> = {
  'unknown-type': 'unsupported-type',
  encrypted: 'unprocessable',
  corrupt: 'unprocessable',
  empty: 'unprocessable',
  'too-much': 'unprocessable',
  'too-long': 'too-large',
  busy: 'overloaded',
};

/** Seconds after which a line of documents has moved. */
const retryAfter = 5;

/** Documents in the words of the product. */
export function convertDocument(documents: Documents): ConvertDocument {
  return async (content, options) => {
    try {
      return await documents.convert(content, options);
    } catch (error) {
      if (!(error instanceof ConversionRefused)) throw error;
      throw new Fault(codes[error.reason], error.message, { cause: error.cause, ...(error.reason === 'busy' ? { retryAfter } : {}) });
    }
  };
}
