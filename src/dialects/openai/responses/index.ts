import { isTranslated, type GenerateCall } from '#core/call';
import type { Dialect } from '../../dialect.ts';
import { composed, type Fitted } from '../../shared/fitting.ts';
import { endedAtStop } from '../../shared/stop-sequences.ts';
import { withoutLoneItems } from '../../shared/lone-items.ts';
import { fittedTools } from '../../shared/tool-fit.ts';
import { valueInObject } from '../../shared/value-in-object.ts';
import { hasOtherTools } from '../tool-types.ts';
import { searches, supports } from './capabilities.ts';
import { turnsOf, type Before } from './decode-input.ts';
import { callOf, requestOf } from './decode-request.ts';
import { decoder } from './decoder.ts';
import { encodeRequest } from './encode-request.ts';
import { Encoder, type ResponseBeingWritten } from './encoder.ts';
import { decodeFault } from './faults.ts';
import { fieldNames } from './field-names.ts';
import { learn, type Quirks } from './quirks.ts';
import { decodeResult, encodeResult } from './result.ts';
import { isReasoning } from './thoughts.ts';
import { toolRules } from './tool-rules.ts';
import { dialect } from './wire.ts';
import type { OutputLimit } from '../../shared/output-limit.ts';

interface ResponsesWire {
  /** The stored conversation that a request continues. */
  readonly outside: Before;
  readonly answer: ResponseBeingWritten;
  readonly quirks: Quirks;
  readonly options: OutputLimit;
}

/** The schema of an answer is that of an object: its wire accepts no other. */
const rootAsObject = (call: GenerateCall) =>
  call.output.type === 'schema' && call.output.schema['type'] !== 'object' && isTranslated(call, dialect) ? valueInObject(call) : undefined;

/** An item cannot stay whose tools are of types that the model does not accept. */
const itemFit = (call: GenerateCall, { functionsOnly, withoutItems }: Quirks = {}): Fitted | undefined => {
  const which = withoutItems ?? (functionsOnly && hasOtherTools({ tools: call.tools.filter(({ inItem }) => inItem), turns: [] }) ? 'with-tools' : undefined);
  return which && withoutLoneItems(call, which);
};

const fit = composed<Quirks>([itemFit, (call, quirks) => fittedTools(call, toolRules(quirks)), endedAtStop, rootAsObject])!;

/** OpenAI's responses. Its face decodes a request in two steps, and loads the stored conversation in between. */
export const responses: Dialect<ResponsesWire> = {
  name: dialect,
  betaHeader: 'openai-beta',
  thoughts: 'summary',
  fit,
  returned: { isReturned: isReasoning, callMembers: [], ofOwnClients: true, isBound: true },
  decodeRequest(body, before) {
    const request = requestOf(body);
    return callOf(request, [...before.turns, ...turnsOf(request.input, before)]);
  },
  encoder: (response) => new Encoder(response),
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
