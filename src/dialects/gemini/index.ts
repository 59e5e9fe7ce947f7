import type { Dialect } from '../dialect.ts';
import { composed } from '../shared/fitting.ts';
import { withoutLoneItems } from '../shared/lone-items.ts';
import { fittedTools } from '../shared/tool-fit.ts';
import { codeAsText } from './code-as-text.ts';
import { searches, supports } from './capabilities.ts';
import { decodeRequest, type Addressed } from './decode-request.ts';
import { callMarker, decoder } from './decoder.ts';
import { encodeRequest } from './encode-request.ts';
import { encoder, type ContentAnswer } from './encoder.ts';
import { decodeFault } from './faults.ts';
import { fieldNames } from './field-names.ts';
import { learn, type Quirks } from './quirks.ts';
import { completed, plainAnswer } from './plain-answer.ts';
import { decodeResult, encodeResult } from './result.ts';
import { toolRules } from './tool-rules.ts';
import { dialect } from './wire.ts';
import type { OutputLimit } from '../shared/output-limit.ts';

interface GeminiWire {
  readonly outside: Addressed;
  readonly answer: ContentAnswer;
  readonly quirks: Quirks;
  readonly options: OutputLimit;
}

const fit = composed<Quirks>([(call) => withoutLoneItems(call), (call) => fittedTools(call, toolRules), codeAsText])!;

/** Google's content generation, of the Gemini API and of the cloud platform. */
export const gemini: Dialect<GeminiWire> = {
  name: dialect,
  thoughts: 'summary',
  fit,
  callMarker,
  returned: { isReturned: () => false, callMembers: ['thoughtSignature'], ofOwnClients: true, isBound: true },
  decodeRequest,
  encoder,
  encodeResult,
  encodeRequest,
  decoder,
  decodeResult,
  plainAnswer,
  completed,
  decodeFault,
  fieldNames,
  supports,
  learn,
  searches,
};
