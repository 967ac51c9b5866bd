import { createRequire } from 'node:module';
import { Playground } from './playground.js';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** What axe finds on the page as it is now. */
export async function findings({ page }: Playground): Promise<readonly string[]> {
  const violations: readonly Violation[] = await page.evaluate('axe.run().then(({ violations }) => violations)');
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map((node) => `${impact} ${id}: ${node.html}\n${node.failureSummary}`),
  );
}

/** Opens the page with axe in it: from a file, before the page's policy applies. */
export async function openWithAxe(...parameters: Parameters<typeof Playground.open>): Promise<Playground> {
  const playground = await Playground.open(...parameters);
  await playground.context.addInitScript({ path: AXE });
  await playground.page.reload();
  await playground.settled();
  return playground;
}
