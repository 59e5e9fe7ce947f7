/** Writes docs/matrix.md, and prints what should not be in it: `npm run matrix`. */
import { writeFileSync } from 'node:fs';
import { matrix, pageOf, placeOf, wrongIn } from './matrix.ts';

const cells = await matrix();
writeFileSync(new URL('../../docs/matrix.md', import.meta.url), pageOf(cells));
for (const cell of wrongIn(cells)) console.log(`${cell.outcome}: ${placeOf(cell)}: ${cell.because}`);
