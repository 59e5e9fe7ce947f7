import type { Dialect } from '../dialect.ts';
import { composed } from '../shared/fitting.ts';
import { withoutLoneItems } from '../shared/lone-items.ts';
import { fittedTools } from '../shared/tool-fit.ts';
import { wordInObject } from '../shared/value-in-object.ts';
import { searches, supports } from './capabilities.ts';
import { decodeRequest } from './decode-request.ts';
import { callMarker, decoder } from './decoder.ts';
import { encodeRequest } from './encode-request.ts';
import type { RequestOptions } from './request-options.ts';
import { encoder, type MessageAnswer } from './encoder.ts';
import { decodeFault } from './faults.ts';
import { isSignedThought } from './encode-messages.ts';
import { fieldNames } from './field-names.ts';
import { learn, type Quirks } from './quirks.ts';
import { plainAnswer } from './decode-answer.ts';
import { decodeResult, encodeResult } from './result.ts';
import { toolRules } from './tool-rules.ts';
import { dialect } from './wire.ts';

interface MessagesWire {
  readonly outside: void;
  readonly answer: MessageAnswer;
  readonly quirks: Quirks;
  readonly options: RequestOptions;
}

const fit = composed<Quirks>([(call) => withoutLoneItems(call), (call) => fittedTools(call, toolRules), wordInObject])!;

export const messages: Dialect<MessagesWire> = {
  name: dialect,
  betaHeader: 'anthropic-beta',
  refusedBetas: (quirks) => quirks?.withoutBetas,
  thoughts: 'summary',
  fit,
  callMarker,
  returned: { isReturned: isSignedThought, callMembers: [], ofOwnClients: false },
  decodeRequest,
  encoder,
  encodeResult,
  encodeRequest,
  decoder,
  decodeResult,
  plainAnswer,
  decodeFault,
  fieldNames,
  supports,
  learn,
  searches,
};
