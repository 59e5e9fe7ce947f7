import { asWritten } from '#kit/json/numbers';
import { isObject, textOf, type Json } from '#core/json';

/**
 * Assembles streamed arguments of a function call from fragments, each with a JSON path: `$.location`, `$.lines[2].text`.
 * https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-function-call-arguments
 */
export interface PartialArgs {
  /** Adds the fragments of one frame; invalid ones are skipped. */
  take(pieces: unknown): void;
  /** All of them. */
  json(): string;
}

const mostSteps = 32;
const mostItems = 10_000;
const mostPieces = 100_000;

export function partialArgs(): PartialArgs {
  const root: Record<string, Json> = {};
  const open = new Set<string>(); // paths whose text continues
  let taken = 0;
  return {
    take(pieces) {
      if (!Array.isArray(pieces)) return;
      for (const piece of pieces as readonly unknown[]) {
        if (!isObject(piece) || ++taken > mostPieces) continue;
        const path = textOf(piece['jsonPath']);
        const steps = stepsOf(path);
        const value = valueOf(piece);
        if (!steps || value === undefined) continue;
        put(root, steps, value, open.has(path));
        if (piece['willContinue'] === true) open.add(path);
        else open.delete(path);
      }
    },
    json: () => JSON.stringify(root),
  };
}

/** @returns for `JSON.stringify` alone */
function valueOf(piece: Readonly<Record<string, unknown>>): Json | undefined {
  const { stringValue, numberValue, boolValue } = asWritten(piece) as Readonly<Record<string, unknown>>;
  if (typeof stringValue === 'string') return stringValue;
  if (typeof piece['numberValue'] === 'number') return numberValue as Json;
  if (typeof boolValue === 'boolean') return boolValue;
  return 'nullValue' in piece ? null : undefined;
}

/** @returns undefined for a path that is invalid or too deep */
function stepsOf(path: string): readonly (string | number)[] | undefined {
  if (path.length > 4096 || !/^\$(\.[^.[\]]+|\[\d{1,5}\]|\['[^']*'\]|\["[^"]*"\])+$/.test(path)) return undefined;
  const steps = Array.from(path.matchAll(/\.([^.[\]]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]/g), ([, name, index, single, double]) =>
    index === undefined ? (name ?? single ?? double ?? '') : Number(index),
  );
  const proper = steps.every((step) => (typeof step === 'number' ? step < mostItems : step !== '__proto__'));
  return proper && typeof steps[0] === 'string' && steps.length <= mostSteps ? steps : undefined;
}

type Container = Record<string | number, Json>;

function put(root: Record<string, Json>, steps: readonly (string | number)[], value: Json, continues: boolean): void {
  let place = root as Container;
  for (const [at, step] of steps.slice(0, -1).entries()) {
    const inner = Object.hasOwn(place, step) ? place[step] : undefined;
    if (inner === null || typeof inner !== 'object') place[step] = typeof steps[at + 1] === 'number' ? [] : {};
    place = place[step] as unknown as Container;
  }
  const last = steps.at(-1)!;
  const before = Object.hasOwn(place, last) ? place[last] : undefined;
  place[last] = continues && typeof before === 'string' && typeof value === 'string' ? before + value : value;
}
