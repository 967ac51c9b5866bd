import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { settle } from '../../contract/wait.js';
import type { Suite } from '../support/suite.js';

/** Registration: `plugboard check` registers every plugin, beside a server that runs. */
export function registrationCase({ addAlone, clock }: Suite, register: (folder: string) => unknown): void {
  addAlone('registers without side effects', 'PluginDefinition.register', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'store-contract-'));
    try {
      const [resources, timers] = [openResources(), clock?.pending];
      await register(folder);
      await settle();
      assert.deepEqual(readdirSync(folder), [], 'registering created files: create them in `start`');
      assert.deepEqual(added(resources, openResources()), [], 'registering opened sockets or files: open them in `start`');
      assert.equal(clock?.pending, timers, 'registering started a timer: start it in `start`');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** Resources that were opened. Those that other code closes meanwhile are ignored. */
function added(before: readonly string[], after: readonly string[]): readonly string[] {
  const rest = [...before];
  return after.filter((kind) => {
    const index = rest.indexOf(kind);
    if (index >= 0) rest.splice(index, 1);
    return index < 0;
  });
}

/** What keeps the process alive, other than timers: those of the test runner come and go. */
function openResources(): readonly string[] {
  return process.getActiveResourcesInfo().filter((kind) => !/Timeout|Immediate|TickObject|FSReq|CloseReq/.test(kind));
}
