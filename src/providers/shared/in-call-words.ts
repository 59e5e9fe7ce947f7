import { callField, type FieldNames } from '#dialects/shared/field-names';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import { own, type JsonObject } from '#core/json';

/**
 * A refusal whose field is named as the call names it, so that the face can name it as its client did. A field that the client did not send is said to be the
 * gateway's.
 * @param body encodes the request again, for the places in its lists
 */
export function inCallWords(fault: Fault, names: FieldNames, call: GenerateCall, body: () => JsonObject): Fault {
  const { code, message, details } = fault;
  const { field, place = field, said } = details;
  if (field === undefined || place === undefined) return fault;
  const isSame = call.dialect === names.dialect;
  const isOwn = () => isSame && !added.test(place) && Object.hasOwn(body(), /^\w{1,60}/.exec(place)?.[0] ?? '');
  const named = (isSame ? sameWords(place, names, call) : undefined) ?? callField(names, place, call, body) ?? (isOwn() ? field : undefined);
  const words = said === undefined ? message : message.slice(0, message.length - said.length);
  const { field: _, place: __, ...others } = details;
  if (named === undefined)
    return new Fault(code, `The provider did not accept ${field}, which the gateway added.${said === undefined ? '' : ` It says: ${said}`}`, others);
  return new Fault(code, words.replaceAll(field, named) + (said ?? ''), { ...others, field: named });
}

/** Fields that the gateway adds to requests of clients of the same wire; all others are their own. */
const added = /^(?:stream_options|include|store|cache_control|max_\w{1,40}|generationConfig\.maxOutputTokens|thoughtSignature|id)\b/;

/** What the client wrote in the words of this wire keeps its name: places in the conversation, and fields that only the wire knows. */
function sameWords(place: string, { turns, dialect }: FieldNames, { extra }: GenerateCall): string | undefined {
  const root = /^\w{1,60}/.exec(place)?.[0] ?? '';
  if (root === 'model' || root === 'stream' || root === turns) return place.replaceAll(/\.(\d{1,9})(?=\.|\[|$)/g, '[$1]');
  const carried = own(extra, dialect);
  return Object.hasOwn(carried, root) || Object.hasOwn(carried, `.${root}`) ? place : undefined; // a note has the client's own spelling
}
