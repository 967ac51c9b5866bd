import { type CommandFamily, Commands } from '@plugboard/kernel/contracts';
import type { TestServer } from '../../support/test-server.js';

/** `plugboard token …` beside a server that runs, and what it prints. */
export async function tokenCommand(
  server: TestServer,
  action: string,
  options: Readonly<Record<string, string>>,
  ...positionals: readonly string[]
): Promise<string> {
  const family = server.started.server.extensions(Commands).get('token') as CommandFamily;
  let printed = '';
  const print = (text: string) => {
    printed += text;
  };
  const args = { positionals, text: (option: string) => options[option], has: (option: string) => option in options };
  await family.actions[action]?.run(args, { input: [] as never, print, note: () => undefined });
  return printed.trim();
}
