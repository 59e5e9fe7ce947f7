import type { PromiseId } from '../contract/promises.ts';
import type { RowId } from '../contract/rows.ts';

/**
 * The title of a test that proves promises of the specification (`contract/promises.ts`) or rows of the plan (`contract/rows.ts`):
 * `test(proves('chat.401', 'a wrong key is refused with 401'), …)`. The gates in `contract/` read these calls from the source.
 */
export function proves(ids: PromiseId | RowId | readonly (PromiseId | RowId)[], title: string): string {
  return [title, ...[ids].flat().map((id) => `[${id}]`)].join(' ');
}
