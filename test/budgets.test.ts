/**
 * What a turn of each kind allocates and begins, against budgets.json. The figures are exact on any
 * machine, so a turn cannot grow unnoticed. `npm run budgets` writes the file anew.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { inspect } from 'node:util';
import t from 'tap';
import { KINDS } from './budgets/kinds.js';
import { type Cost, MeasuredServer } from './budgets/measured-server.js';

const FILE = new URL('./budgets.json', import.meta.url);
/** The share by which bytes may differ. */
const TOLERANCE = 0.03;

interface Budget extends Cost {
  /** Bytes by package, as a profiler samples them. */
  readonly packages: Readonly<Record<string, number>>;
}

const { node, kinds } = JSON.parse(readFileSync(FILE, 'utf8')) as {
  node: string;
  kinds: Readonly<Record<string, Budget>>;
};
const isUpdate = process.env.UPDATE_BUDGETS === '1';
/** Why figures cannot be compared. */
const obstacle =
  !isUpdate && process.version !== node
    ? `the budgets were measured on Node.js ${node}, and this is ${process.version}`
    : /--(inspect|cpu-prof|heap-prof)/.test([process.env.NODE_OPTIONS, ...process.execArgv].join(' '))
      ? 'a debugger or profiler allocates, too'
      : undefined;

t.test('a turn of each kind stays within its budget', { skip: obstacle }, async (t) => {
  const server = await MeasuredServer.start(t);
  const measured: Record<string, Budget> = {};
  for (const [kind, { turns, open }] of Object.entries(KINDS)) {
    const turn = await open(t, server.port);
    const run = async (count: number) => {
      for (let at = 0; at < count; at++) await turn();
    };
    await run(turns); // code is compiled, and connections are opened
    const budget = kinds[kind];
    const isWithin = (cost: Cost) => !isUpdate && budget !== undefined && excessOf(cost, budget).length === 0;
    const cost = await server.measure(run, turns, isWithin);
    if (cost === undefined) {
      t.comment(`${kind}: not measured, because V8 collected garbage each time; run the test alone`);
      continue;
    }
    const excess = isUpdate || budget === undefined ? [] : excessOf(cost, budget);
    const packages = isUpdate || excess.length > 0 ? await server.bytesByPackage(run, turns) : {};
    measured[kind] = { ...cost, packages };
    if (isUpdate) continue;
    t.comment(`${kind}: ${inspect(cost, { breakLength: Number.POSITIVE_INFINITY })}`);
    t.ok(budget !== undefined, `${kind} has a budget`);
    t.strictSame(excess, [], `${kind}: ${excess.length > 0 ? grownPackage(packages, budget?.packages ?? {}) : 'within'}`);
    if (budget !== undefined && cost.bytes < budget.bytes * (1 - TOLERANCE)) {
      t.comment(`${kind}: ${cost.bytes} bytes of ${budget.bytes}; npm run budgets lowers its line`);
    }
  }
  if (isUpdate) writeFileSync(FILE, `${JSON.stringify({ node: process.version, kinds: measured }, null, 2)}\n`);
});

/** What a turn takes more than it may, as sentences. */
function excessOf(cost: Cost, budget: Cost): readonly string[] {
  return Object.keys(cost).flatMap((name) => {
    const [found, limit] = [cost[name as keyof Cost], budget[name as keyof Cost]];
    const most = name === 'bytes' ? limit * (1 + TOLERANCE) : limit;
    return found > most ? [`${found} ${name}, and its budget is ${limit}`] : [];
  });
}

function grownPackage(now: Readonly<Record<string, number>>, before: Readonly<Record<string, number>>): string {
  const growth = Object.entries(now).map(([name, bytes]) => ({ name, more: bytes - (before[name] ?? 0) }));
  const [most] = growth.toSorted((a, b) => b.more - a.more);
  return most === undefined ? 'no package grew' : `${most.name} grew most, by ${most.more} bytes`;
}
