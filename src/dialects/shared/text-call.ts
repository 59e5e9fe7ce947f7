import type { GenerateCall } from '#core/call';
import type { Turn } from '#core/conversation';
import type { Sampling } from '#core/sampling';
import { isEmpty, type Extra } from '#core/json';

/**
 * A call that is nothing but texts: user and model in turn, the user last, a text of the system before them or none, and no fields but those about sampling. It
 * takes no more than its texts to write it in its client's own dialect, without all that other calls are looked through for.
 */
export interface TextCall {
  readonly system: string | undefined;
  /** Those of the user and of the model. */
  readonly turns: readonly Turn[];
  readonly sampling: Sampling;
}

/**
 * @param dialect that of the provider
 * @param fields those about sampling that the dialect writes as they are
 * @param ofSystem the members that the text of the system may carry
 * @returns undefined for any other call
 */
export function textCall(
  call: GenerateCall,
  dialect: string,
  fields: ReadonlySet<keyof Sampling>,
  ofSystem: (extra: Extra | undefined) => boolean = isAbsent,
): TextCall | undefined {
  const { tools, toolChoice, parallelToolCalls, output, reasoning, kept, inPieces, extra, turns, sampling } = call;
  if (call.dialect !== dialect || tools.length > 0 || output.type !== 'text' || reasoning || toolChoice || kept || inPieces) return undefined;
  if (parallelToolCalls !== undefined || !isEmpty(extra)) return undefined;
  for (const field in sampling) if (!fields.has(field as keyof Sampling)) return undefined;
  const first = turns[0]?.role === 'system' ? 1 : 0;
  if ((turns.length - first) % 2 === 0) return undefined;
  for (let at = 0; at < turns.length; at++) {
    const { role, parts, extra: own } = turns[at]!;
    const [part] = parts;
    if (parts.length !== 1 || part!.type !== 'text' || part!.extra !== undefined || part!.citations !== undefined || !/\S/.test(part!.text)) return undefined;
    if (at < first ? !ofSystem(own) : own !== undefined || role !== ((at - first) % 2 === 0 ? 'user' : 'model')) return undefined;
  }
  return first === 0 ? { system: undefined, turns, sampling } : { system: textOfTurn(turns[0]!), turns: turns.slice(1), sampling };
}

const isAbsent = (extra: Extra | undefined): boolean => extra === undefined;

/** The text of a turn of such a call. */
export function textOfTurn({ parts: [part] }: Turn): string {
  return part?.type === 'text' ? part.text : '';
}
