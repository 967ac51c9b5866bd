import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { ASSISTANT, saying, TRANSPORTS } from '../../../test/support/test-server.js';
import { namesIn } from './expressions.js';
import { METRICS, MeasuredServer } from './measured-server.js';
import { promtool, withFile } from './promtool.js';

/*
 * The page, the alerts and the dashboards, as Prometheus' own tool sees them: Debian's package
 * `prometheus` has it, and .ci/run installs it. Without it, this test fails.
 */

const root = join(import.meta.dirname, '..');
const alertsFile = join(root, 'alerts/plugboard.yml');

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}

const rules = (parse(readFileSync(alertsFile, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules);
const dashboards = globSync('dashboards/*.json', { cwd: root }).map((path) => ({
  path,
  dashboard: JSON.parse(readFileSync(join(root, path), 'utf8')) as Dashboard,
}));
/** Each expression with where it is. */
const expressions = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
  ...dashboards.flatMap(({ path, dashboard: { panels } }) =>
    panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: `${path}: ${title}`, expr }))),
  ),
];

/** The labels of the table in the README, by the names there. */
function documented(): ReadonlyMap<string, readonly string[]> {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const model = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'];
  const rows = Array.from(readme.matchAll(/^\| (`[^|]+) \| ([^|]+) \| ([^|]+) \|$/gm));
  const entries = rows.flatMap(([, names = '', , labels = '']) => {
    const [, own] = /`([^`]+)`/.exec(labels) ?? [];
    const list = [...(labels.startsWith('…') ? model : []), ...(own?.split(', ') ?? [])];
    return Array.from(names.matchAll(/`([^`]+)`/g), ([, name = '']) => [
      name.startsWith('…') ? `gen_ai_client_inference_usage${name.slice(1)}` : name,
      list,
    ]) as [string, string[]][];
  });
  return new Map(entries);
}

t.test('the page has each metric of the README, and promtool accepts it', async (t) => {
  const server = await MeasuredServer.start(t, TRANSPORTS + ASSISTANT + METRICS);
  server.app.models.enqueue({ text: 'Hello.' }, { status: 500 });
  await server.app.chat(saying('Hi'));
  await server.app.stream(saying('Hi'));
  const page = await server.turns(2);
  t.same(await promtool(['check', 'metrics'], page.text), { code: 0, text: '' });

  const own = [...page.declared.keys()].filter((name) => !/^(?:process|nodejs)_/.test(name));
  t.same(own.toSorted(), [...documented().keys()].toSorted());
  for (const { name, labels } of page.all) {
    const metric = name.replace(/_(?:bucket|sum|count)$/, '');
    const known = documented().get(metric) ?? documented().get(name);
    if (known)
      t.same(
        Object.keys(labels).filter((label) => label !== 'le' && !known.includes(label)),
        [],
        name,
      );
  }

  const exported = new Set(
    [...page.declared].flatMap(([name, type]) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name],
    ),
  );
  const labels = new Set([...[...documented().values()].flat(), 'le', 'instance', 'job']);
  t.ok(expressions.length > 50);
  for (const { where, expr } of expressions) {
    const used = namesIn(expr);
    t.ok(used.metrics.length > 0, where);
    t.same(
      used.metrics.filter((name) => !exported.has(name)),
      [],
      where,
    );
    t.same(
      used.labels.filter((label) => !labels.has(label)),
      [],
      where,
    );
  }
  for (const { dashboard, path } of dashboards) {
    for (const { definition } of dashboard.templating.list) {
      const [, name, label] = /^label_values\((\w+), (\w+)\)$/.exec(definition ?? '') ?? [];
      if (definition) t.ok(exported.has(name ?? '') && labels.has(label ?? ''), `${path}: ${definition}`);
    }
    const ids = dashboard.panels.map(({ id }) => id);
    t.equal(new Set(ids).size, ids.length, `${path}: the panels have ids of their own`);
  }
});

t.test('promtool accepts the alerts, and the expressions of the dashboards', async (t) => {
  t.match(await promtool(['check', 'rules', alertsFile]), { code: 0, text: `SUCCESS: ${rules.length} rules found` });
  const recorded = expressions.map(({ expr }, number) => ({
    record: `expression_${number}`,
    expr: expr.replaceAll('$__rate_interval', '5m'),
  }));
  const file = JSON.stringify({ groups: [{ name: 'dashboards', rules: recorded }] });
  t.match(await withFile(file, (path) => promtool(['check', 'rules', path])), { code: 0 });
});

t.test('the alerts fire when they should, and not on a healthy server', async (t) => {
  const healthy = [
    ['plugboard_build_info{instance="a",version="0.1.0"}', '1x60'],
    ['plugboard_entry_up{instance="a",entry="transports.http"}', '1x60'],
    ['plugboard_entry_up{instance="a",entry="models.disabled_on_purpose"}', '0x60'],
    ['plugboard_turns_total{instance="a",agent="assistant",status="stop"}', '0+60x60'],
    ['plugboard_turns_total{instance="a",agent="assistant",status="invalid_request"}', '0+60x60'],
    ['plugboard_limit_used{instance="a",setting="limits.runningTurns"}', '10x60'],
    ['plugboard_limit_max{instance="a",setting="limits.runningTurns"}', '100x60'],
    ['plugboard_limit_refused_total{instance="a",setting="limits.runningTurns"}', '3x60'],
    ['plugboard_unpriced_calls_total{instance="a",agent="assistant",model="fast",currency="USD"}', '5x120'],
    ['gen_ai_client_inference_duration_seconds_count{instance="a",gen_ai_request_model="big-1"}', '0+60x60'],
  ];
  const broken = [
    ['plugboard_entry_up{instance="b",entry="transports.telegram"}', '1x20 0x40'],
    ['plugboard_turns_total{instance="b",agent="assistant",status="stop"}', '0+60x60'],
    ['plugboard_turns_total{instance="b",agent="assistant",status="model_failed"}', '0+6x60'],
    ['plugboard_limit_used{instance="b",setting="limits.runningTurns"}', '95x60'],
    ['plugboard_limit_max{instance="b",setting="limits.runningTurns"}', '100x60'],
    ['plugboard_limit_refused_total{instance="b",setting="limits.runningTurns"}', '0+1x60'],
    ['plugboard_unpriced_calls_total{instance="b",agent="assistant",model="fast",currency="USD"}', '_x100 1x20'],
    ['plugboard_tools_abandoned_total{instance="b",entry="tools.files"}', '_x55 1x65'],
    ['gen_ai_client_inference_duration_seconds_count{instance="b",gen_ai_request_model="big-1"}', '0+60x60'],
    [
      'gen_ai_client_inference_duration_seconds_count{instance="b",gen_ai_request_model="big-1",error_type="model_failed"}',
      '0+20x60',
    ],
    ['nodejs_eventloop_lag_p99_seconds{instance="b"}', '0.7x60'],
  ];
  const firing = [
    ['60m', 'PlugboardEntryDown'],
    ['60m', 'PlugboardTurnsFail'],
    ['60m', 'PlugboardLimitNear'],
    ['60m', 'PlugboardLimitRefuses'],
    ['60m', 'PlugboardToolAbandoned'],
    ['60m', 'PlugboardModelFails'],
    ['60m', 'PlugboardEventLoopBlocked'],
    ['110m', 'PlugboardCallsUnpriced'],
  ];
  // Each alert fires for the broken server alone; `absent` after both have gone.
  const tests = firing.map(([at = '', alert = '']) => ({ eval_time: at, alert, at }));
  const found = await withFile(
    JSON.stringify({
      rule_files: [alertsFile],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [...healthy, ...broken].map(([series, values]) => ({ series, values })),
          promql_expr_test: [
            ...tests.map(({ eval_time, alert }) => ({
              expr: `count by (instance, alertstate) (ALERTS{alertname="${alert}"})`,
              eval_time,
              exp_samples: [{ labels: '{instance="b", alertstate="firing"}', value: 1 }],
            })),
            { expr: 'count(ALERTS{instance="a"})', eval_time: '60m', exp_samples: [] },
            {
              expr: 'count(ALERTS{alertname="PlugboardAbsent", alertstate="firing"})',
              eval_time: '80m',
              exp_samples: [{ labels: '{}', value: 1 }],
            },
          ],
        },
      ],
    }),
    (path) => promtool(['test', 'rules', path]),
  );
  t.match(found, { code: 0 }, found.text);
});
