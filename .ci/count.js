// node count.js FILE: from vitest's JSON, how many tests passed, and how many did not: failed, skipped, or in a file that could not be read.
import { readFileSync } from 'node:fs';

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
let passed = 0;
const others = [];
for (const { name, status, message, assertionResults } of testResults) {
  if (status === 'failed' && !assertionResults.some((one) => one.status === 'failed')) others.push(`${name}: ${message}`);
  for (const one of assertionResults) {
    if (one.status === 'passed') passed++;
    else others.push(`${one.status}: ${name}: ${one.fullName}`);
  }
}
for (const line of others) console.error(`   ${line}`);
console.log(passed, others.length);
