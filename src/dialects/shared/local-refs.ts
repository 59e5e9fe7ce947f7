import type { Json, JsonObject } from '#core/json';
import { percentDecoded } from '#kit/text/percent-decoded';

/** What a reference within a document refers to, such as `#/$defs/A~1B` or `#/anyOf/0`; undefined where there is nothing. */
export function referredTo(ref: string, root: JsonObject): Json | undefined {
  let found: Json | undefined = root;
  const steps = ref.slice(2).split('/', mostSteps + 1);
  if (steps.length > mostSteps) return undefined;
  for (const step of steps) {
    const name = unescaped(step);
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as JsonObject)[name];
  }
  return found;
}

const mostSteps = 32;

/** A step of a JSON pointer in an address. https://www.rfc-editor.org/rfc/rfc6901#section-6 */
function unescaped(step: string): string {
  const text = step.includes('%') ? (percentDecoded(step) ?? step) : step;
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}
