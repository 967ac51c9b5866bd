#!/usr/bin/env node
// Checked in rather than built, because npm links no bin that is missing when it installs.
const [major] = process.versions.node.split('.');
if (Number(major) < 24) {
  console.error(`plugboard needs Node.js 24 or newer; this is ${process.version} (${process.execPath}).`);
  process.exit(1);
}
const { main } = await import('../dist/cli/main.js');
await main(process.argv.slice(2));
