// Runs the part of the benchmark that a flag names. See README.md.
const PARTS = {
  '--peers': './peers/run.mjs',
  '--curves': './curves/run.mjs',
  '--memory': './memory.mjs',
  '--loaded': './loaded.mjs',
};

const index = process.argv.findIndex((argument) => argument in PARTS);
const part = index < 0 ? './run.mjs' : PARTS[process.argv[index]];
if (index >= 0) process.argv.splice(index, 1);
await import(part);
