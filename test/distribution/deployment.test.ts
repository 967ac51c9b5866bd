/**
 * The files for containers that `plugboard init` writes, against the official schemas of their
 * formats.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { parseDuration } from '@plugboard/kernel';
import { Ajv } from 'ajv';
import { Deployment } from 'kubernetes-models/apps/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service } from 'kubernetes-models/v1';
import t from 'tap';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { run } from '../../plugins/cli/test/plugboard.js';
import { Page } from '../support/page.js';

const TEMPLATE = join(import.meta.dirname, '../../plugins/cli/templates/distribution');
const read = (name: string) => readFileSync(join(TEMPLATE, name), 'utf8');

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** Seconds for which turns of a stopping server may run: the default of `limits.drain`. */
const DRAIN = 30;
/** Seconds on top, at least, for plugins to stop. */
const MARGIN = 20;

t.test('the compose files are valid', async (t) => {
  const folder = dirname(createRequire(import.meta.url).resolve('dclint/package.json'));
  const { $schema, ...schema } = JSON.parse(readFileSync(join(folder, 'schemas/compose.schema.json'), 'utf8'));
  t.match($schema, 'draft-07');
  const isValid = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
  for (const name of ['compose.yaml', 'compose.replicas.yaml']) {
    const file = parse(read(name));
    t.ok(isValid(file), `${name}: ${JSON.stringify(isValid.errors)}`);
    const [server] = Object.keys(file.services);
    t.notOk(
      isValid({ ...file, services: { ...file.services, [server ?? '']: { build: '.', repilcas: 3 } } }),
      'a mistake is found',
    );
  }
});

const MODELS = { Deployment, PodDisruptionBudget, Service };
const objects: Record<string, Json>[] = parseAllDocuments(read('kubernetes.yaml')).map((document) => document.toJSON());

/** What the schema of its kind says against a Kubernetes object. */
function mistakesIn(object: Record<string, Json>): string | undefined {
  const Model = MODELS[object.kind as keyof typeof MODELS] as new (data: object) => { validate(): void };
  try {
    new Model(object).validate();
    return undefined;
  } catch (error) {
    return String(error);
  }
}

t.test('the Kubernetes objects are valid', async (t) => {
  t.same(
    objects.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`),
    ['apps/v1 Deployment', 'v1 Service', 'policy/v1 PodDisruptionBudget'],
  );
  for (const object of objects) t.equal(mistakesIn(object), undefined, String(object.kind));
});

t.test('every field of the Kubernetes objects is known to the schema', async (t) => {
  // The schema ignores unknown fields. A known one is refused with a value of another type.
  const unknown = objects.flatMap((object) =>
    variantsOf(object).flatMap(([path, variant]) => (mistakesIn(variant) === undefined ? [`${object.kind}${path}`] : [])),
  );
  t.strictSame(unknown, []);
  const [deployment = {}] = objects;
  t.equal(mistakesIn({ ...deployment, specs: 1 }), undefined, 'an unknown field would be found');
});

/** The object with each of its fields replaced by a value that no field accepts there. */
function variantsOf(object: Record<string, Json>, path = ''): [string, Record<string, Json>][] {
  return Object.entries(object).flatMap(([name, value]) => {
    const here = `${path}.${name}`;
    const own: [string, Record<string, Json>] = [here, { ...object, [name]: isScalar(value) ? [[]] : 1.5 }];
    if (Array.isArray(value)) {
      const items = value.flatMap((item, at) => (isScalar(item) ? [] : inItem(object, name, value, at, here)));
      return [own, ...items];
    }
    if (isScalar(value)) return [own];
    const inner = variantsOf(value as Record<string, Json>, here);
    return [own, ...inner.map(([at, variant]): [string, Record<string, Json>] => [at, { ...object, [name]: variant }])];
  });
}

function inItem(object: Record<string, Json>, name: string, list: Json[], at: number, path: string) {
  return variantsOf(list[at] as Record<string, Json>, `${path}[${at}]`).map(([where, item]): [string, Record<string, Json>] => [
    where,
    { ...object, [name]: list.with(at, item) },
  ]);
}

function isScalar(value: Json): boolean {
  return value === null || typeof value !== 'object';
}

t.test('every server has the time to finish its turns: what precedes SIGTERM, `limits.drain`, and a margin', async (t) => {
  for (const name of ['compose.yaml', 'compose.replicas.yaml']) {
    const { services } = parse(read(name));
    t.ok(parseDuration(services['distribution-name'].stop_grace_period) / 1000 >= DRAIN + MARGIN, name);
  }
  t.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(read('distribution.service'))?.[1]) >= DRAIN + MARGIN, 'systemd');
  const pod = parseAllDocuments(read('kubernetes.yaml'))[0]?.toJSON().spec.template.spec;
  const sleep = Number(pod.containers[0].lifecycle.preStop.exec.command[1]);
  t.ok(sleep > 0 && pod.terminationGracePeriodSeconds >= sleep + DRAIN + MARGIN, 'Kubernetes');
});

t.test('load balancers ask whether a server is ready, and nothing that restarts it asks the database', async (t) => {
  const [container] = parseAllDocuments(read('kubernetes.yaml'))[0]?.toJSON().spec.template.spec.containers ?? [];
  const path = (probe: string) => container[probe].httpGet.path;
  t.equal(path('readinessProbe'), '/readyz');
  t.equal(path('livenessProbe'), '/healthz');
  t.equal(path('startupProbe'), '/healthz');
});

t.test('plugboard.yaml is valid with what the README and the guide change for several servers', async (t) => {
  const pages = [join(TEMPLATE, 'README.md'), join(import.meta.dirname, '../../docs/guides/scaling-out.md')];
  const blocks = pages.flatMap((page) => new Page(page).in('yaml'));
  t.ok(blocks.length > 2);
  const env = { DATABASE_URL: 'postgres://user:secret@pool.test/app', DIRECT_URL: 'postgres://user:secret@db.test/app' };
  for (const { text } of blocks) {
    const cwd = t.testdir({ 'plugboard.yaml': stringify({ ...parse(read('plugboard.yaml')), ...parse(text) }) });
    const { code, stderr } = await run(t, ['check'], { cwd, env });
    t.equal(code, 0, `${text}${stderr}`);
  }
});
