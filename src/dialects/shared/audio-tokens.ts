import type { Usage } from '#core/event';
import { isCount } from './read-fields.ts';

/** The tokens of sound in a usage, where there are any; impossible counts are left out. */
export function audioIn(inInput: unknown, inOutput: unknown, { input, output }: Pick<Usage, 'input' | 'output'>): Pick<Usage, 'audioInput' | 'audioOutput'> {
  return {
    ...(isCount(inInput) && inInput > 0 && inInput <= input ? { audioInput: inInput } : {}),
    ...(isCount(inOutput) && inOutput > 0 && inOutput <= output ? { audioOutput: inOutput } : {}),
  };
}
