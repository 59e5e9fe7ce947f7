import type { GenerateCall } from '#core/call';
import { decoding, type Decoder } from '../../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/** A chat completion stream → events. @param call the call that is answered: some servers send the names of its tools in pieces */
export const decoder = (
  model: string,
  ignored: readonly string[] = [],
  call?: Pick<GenerateCall, 'tools'> & Partial<Pick<GenerateCall, 'sampling'>>,
): Decoder => decoding(reader(model, ignored, call && namesIn(call), call?.sampling?.candidates), malformed);

const namesIn = ({ tools }: Pick<GenerateCall, 'tools'>): ReadonlySet<string> =>
  tools.length === 0 ? none : new Set(tools.flatMap((tool) => (tool.type === 'foreign' ? [] : [tool.name])));

const none: ReadonlySet<string> = new Set();
