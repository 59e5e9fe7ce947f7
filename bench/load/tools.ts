/** The clients and the provider of a measurement: compiled if there is a C compiler, else on Node. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { installed } from '../processes.ts';

export interface Tools {
  /** Program and first arguments; options follow. */
  readonly load: readonly [string, ...string[]];
  readonly upstream: readonly [string, ...string[]];
  /** Printed under the table if the tools are slow. */
  readonly remark: string | undefined;
}

/** Compiles the tools into the folder. */
export function makeTools(folder: string): Tools {
  const compiled =
    installed('cc') &&
    ['load', 'upstream'].every((name) => spawnSync('cc', ['-O2', '-o', join(folder, name), join(import.meta.dirname, `${name}.c`)]).status === 0);
  if (compiled) return { load: [join(folder, 'load')], upstream: [join(folder, 'upstream')], remark: undefined };
  return {
    load: [process.execPath, join(import.meta.dirname, 'load.ts')],
    upstream: [process.execPath, join(import.meta.dirname, 'upstream.ts')],
    remark: 'No C compiler (cc): clients and provider run on Node and are the bottleneck; CPU times hold, latencies and first chunks do not.',
  };
}
