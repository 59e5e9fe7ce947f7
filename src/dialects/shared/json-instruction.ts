import type { Output } from '#core/call';

/** What a model is told about its answer where a wire or a model has no field for that. @returns undefined where any text will do */
export function jsonInstruction(output: Output): string | undefined {
  switch (output.type) {
    case 'text':
      return undefined;
    case 'json':
      return 'Answer with one JSON object and nothing else: no other text and no code fence.';
    case 'schema': {
      const described = output.description === undefined ? '' : ` (${output.description})`;
      return `Answer with JSON${described} that conforms to this JSON Schema, and nothing else: no other text and no code fence.\n${JSON.stringify(output.schema)}`;
    }
    default:
      return output satisfies never;
  }
}
