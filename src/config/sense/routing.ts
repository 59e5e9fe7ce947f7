import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

export function* routing({ routing }: Settings): Iterable<Trouble> {
  if (routing.cooldownMaxSeconds < routing.cooldownSeconds) yield { path: ['routing', 'cooldownMaxSeconds'], text: 'must be at least cooldownSeconds.' };
}
