// Fails where `npm test -- --coverage` covered less than it must.
import { readFileSync } from 'node:fs';

const LEAST = 95;
const { total } = JSON.parse(readFileSync('.tap/report/coverage-summary.json', 'utf8'));
const short = ['lines', 'branches'].filter((kind) => total[kind].pct < LEAST);
for (const kind of ['lines', 'branches']) console.log(`coverage of ${kind}: ${total[kind].pct} %`);
if (short.length > 0) {
  console.error(`Coverage of ${short.join(' and ')} is below ${LEAST} %. \`npx tap report text\` shows what is not covered.`);
  process.exit(1);
}
