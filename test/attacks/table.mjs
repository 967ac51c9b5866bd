// What each attack of docs/reference/authentication.md (S-49 to S-76) costs a server, and what a
// caller of another project gets meanwhile:
//
//   npm run build && nice node test/attacks/table.mjs [--root FOLDER] [--only schema,S-71]
//
// FOLDER holds another version of the repository, built: this one by default. `--only` takes parts
// of names. `--verbose` shows the log of the server. Each attack has a server of its own with a
// heap of 256 MiB. The figures mean something on a machine that does nothing else: of a stall, the
// time that the server worked is given too, because the rest is that of the machine.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startHostileUpstream } from './support/hostile-upstream.ts';
import { BODIES } from './table/bodies.mjs';
import { measure } from './table/measure.mjs';
import { READS } from './table/reads.mjs';
import { TURNS } from './table/turns.mjs';
import { UPSTREAM } from './table/upstream.mjs';
import { WORK } from './table/work.mjs';

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: resolve(import.meta.dirname, '../..') },
    only: { type: 'string', default: '' },
    verbose: { type: 'boolean', default: false },
  },
});
const { url: hostileUrl } = await startHostileUpstream();
const options = { root: resolve(values.root), hostileUrl, verbose: values.verbose };

console.log('| attack | sent | resident, above the start | longest stall | others: rate | slowest | refused | answers |');
console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
for (const [name, attack] of Object.entries({ ...WORK, ...BODIES, ...TURNS, ...READS, ...UPSTREAM })) {
  if (!values.only.split(',').some((part) => name.includes(part))) continue;
  console.log(`| ${(await measure(name, attack, options)).join(' | ')} |`);
}
process.exit();
