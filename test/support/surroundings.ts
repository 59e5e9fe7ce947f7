import type { SurroundingSettings } from '../../src/http/surroundings.ts';

/** No proxy is trusted, and no other origin may ask. */
export const nowhere: SurroundingSettings = { trustedProxies: [], origins: [], publicUrl: '' };

/**
 * Node's arguments for the program in a process of a test. The WebAssembly of the embedded database is compiled once and not optimized, which would cost each
 * start a second of CPU time.
 */
export const ofNode: readonly string[] = ['--conditions=dragoman-source', '--liftoff-only'];

/** What a process of a test inherits, and nothing that would set it up: NODE_COMPILE_CACHE saves it a second of CPU time. @param more further names */
export function passedOn(...more: readonly string[]): Record<string, string> {
  const names = ['PATH', 'NODE_COMPILE_CACHE', ...more];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}
