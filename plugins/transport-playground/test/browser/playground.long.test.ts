import t from 'tap';
import { access } from './cases/access.js';
import { accessibility } from './cases/accessibility.js';
import { agentCard } from './cases/agent-card.js';
import { approvals } from './cases/approvals.js';
import { branches } from './cases/branches.js';
import { chat } from './cases/chat.js';
import { code } from './cases/code.js';
import { connection } from './cases/connection.js';
import { environmentFaults } from './cases/environment-faults.js';
import { findingSessions } from './cases/finding-sessions.js';
import { focus } from './cases/focus.js';
import { images } from './cases/images.js';
import { layout } from './cases/layout.js';
import { markdown } from './cases/markdown.js';
import { safety } from './cases/safety.js';
import { screenshot } from './cases/screenshot.js';
import { sessions } from './cases/sessions.js';
import { timeline } from './cases/timeline.js';
import { turns } from './cases/turns.js';
import { watching } from './cases/watching.js';
import { launch, skip } from './support/browser.js';

t.setTimeout(600_000);

// One file for all groups: one browser, and one line if there is none.
t.test('the playground in a real browser', { skip, timeout: 600_000 }, async (t) => {
  const browser = await launch();
  t.teardown(() => browser.close());
  for (const [name, cases] of Object.entries({
    chat,
    turns,
    branches,
    connection,
    watching,
    approvals,
    sessions,
    findingSessions,
    agentCard,
    access,
    code,
    markdown,
    images,
    timeline,
    safety,
    environmentFaults,
    focus,
    accessibility,
    layout,
    screenshot,
  })) {
    await t.test(name, { timeout: 300_000 }, async (t) => {
      await cases(t, browser);
    });
  }
});
