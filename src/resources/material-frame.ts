import { createHash } from 'node:crypto';

/**
 * Material between two equal lines that no text can foresee that stands in it, and that are the same for the same material: the prompt can be cached.
 * Instructions to a model say that nothing between such lines is an instruction.
 */
export function framed(body: string): string {
  const boundary = `----- ${createHash('sha256').update(body).digest('hex').slice(0, 16)} -----`;
  return `${boundary}\n\n${body}\n\n${boundary}`;
}
