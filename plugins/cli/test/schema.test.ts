import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import t from 'tap';
import { parse } from 'yaml';
import { distribution, run } from './plugboard.js';

t.test('the printed schema accepts the file it was made for', async (t) => {
  const cwd = t.testdir(distribution);
  const { code, stdout, stderr } = await run(t, ['schema'], { cwd });
  t.equal(code, 0);
  t.equal(stderr, '');
  const validate = new Ajv({ allowUnionTypes: true, keywords: ['patternErrorMessage'] }).compile(JSON.parse(stdout));
  for (const [key, { description }] of Object.entries<{ description?: string }>(JSON.parse(stdout).properties)) {
    t.match(description, /\S.*\.$/, `${key} has a description`);
  }
  const file = parse(readFileSync(join(cwd, 'plugboard.yaml'), 'utf8'));
  t.ok(validate(file), JSON.stringify(validate.errors));
  t.notOk(
    validate({ ...file, agents: { assistant: { model: 'fast', maxSteps: 'many' } } }),
    'agents are checked as the kernel does',
  );
  t.ok(validate({ ...file, agents: { assistant: { model: 'fast', maxSteps: `\${STEPS}` } } }));
});
