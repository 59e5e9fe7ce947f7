import { isTranslated, type GenerateCall } from '#core/call';
import { own } from '#core/json';
import type { Dialect } from '../../dialect.ts';
import { composed, type Fitted } from '../../shared/fitting.ts';
import { withoutLoneItems } from '../../shared/lone-items.ts';
import { endedAtStop } from '../../shared/stop-sequences.ts';
import { thinkingOf } from '../thinking.ts';
import { valueInObject, wordInObject } from '../../shared/value-in-object.ts';
import { searches, supports } from './capabilities.ts';
import { decodeRequest } from './decode-request.ts';
import { decoder } from './decoder.ts';
import { sentEffort } from './efforts.ts';
import { encodeRequest } from './encode-request.ts';
import { isOtherRoot } from './encode-output.ts';
import { encoder, type ChatAnswer } from './encoder.ts';
import { decodeFault } from './faults.ts';
import { fieldNames } from './field-names.ts';
import { withoutOlderFunctions } from './older-functions.ts';
import { learn, type Quirks } from './quirks.ts';
import { decodeResult, encodeResult } from './result.ts';
import { fit as toolFit } from './tool-rules.ts';
import { dialect } from './wire.ts';
import type { OutputLimit } from '../../shared/output-limit.ts';

interface ChatWire {
  readonly outside: void;
  readonly answer: ChatAnswer;
  readonly quirks: Quirks;
  readonly options: OutputLimit;
}

const valueFit = (call: GenerateCall, quirks: Quirks | undefined): Fitted | undefined => {
  if (call.output.type !== 'schema') return undefined;
  return isOtherRoot(call, quirks) ? valueInObject(call) : wordInObject(call);
};

const itemFit = (call: GenerateCall): Fitted | undefined => (isTranslated(call, dialect) ? withoutLoneItems(call) : undefined);

const olderFit = (call: GenerateCall, quirks: Quirks | undefined): Fitted | undefined =>
  quirks?.olderFunctions || isTranslated(call, dialect) ? undefined : withoutOlderFunctions(call);

/** The gateway ends the answer where the model does not. */
const stopFit = (call: GenerateCall, quirks: Quirks = {}): Fitted | undefined =>
  isTranslated(call, dialect) && quirks.refused?.['stop']?.includes(thinkingOf(sentEffort(call, quirks).effort)) ? endedAtStop(call) : undefined;

const fits = composed<Quirks>([itemFit, olderFit, toolFit, stopFit, valueFit])!;

/** Nearly all calls of clients of this wire go as they are. */
const fit = (call: GenerateCall, quirks: Quirks | undefined): Fitted | undefined =>
  call.output.type !== 'schema' && !quirks?.functionsOnly && !isTranslated(call, dialect) ? olderFit(call, quirks) : fits(call, quirks);

/** OpenAI's chat completions, which most other providers support too. */
export const chat: Dialect<ChatWire> = {
  name: dialect,
  betaHeader: 'openai-beta',
  fit,
  returned: {
    isReturned: (part) => part.type === 'thought' && typeof own(part.extra, dialect)['field'] === 'string',
    callMembers: ['extra_content'], // https://ai.google.dev/gemini-api/docs/openai
    ofOwnClients: true,
    isUnordered: true,
  },
  decodeRequest: (body) => decodeRequest(body).call,
  encoder,
  encodeResult,
  encodeRequest,
  decoder,
  decodeResult,
  decodeFault,
  fieldNames,
  supports,
  learn,
  searches,
};
