/** Prints which refusals of the vendors reach clients that should not see them: `node bin/run.js test/vendors/report.ts 1000`. */
import { grouped, judged } from './judged-calls.ts';

const count = Number(process.argv[2] ?? 1000);
const from = Number(process.argv[3] ?? 1);

for (const known of [true, false]) {
  const { wrong, own, hits } = await judged(
    Array.from({ length: count }, (_, at) => at + from),
    known,
  );
  console.log(`\n## ${known ? 'Vendors at their own addresses' : 'Vendors at addresses that nobody knows'}: ${wrong.length} of ${count} calls\n`);
  console.log(grouped(wrong) || 'None.');
  console.log(`\n### Refused by the gateway itself: ${own.length}\n\n${grouped(own) || 'None.'}`);
  const rules = [...hits].toSorted(([, a], [, b]) => b - a).map(([name, times]) => `${times} × ${name}`);
  console.log(`\n### Refusals upstream, repeated ones included\n\n${rules.join('\n') || 'None.'}`);
}
