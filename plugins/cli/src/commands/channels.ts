import type { CommandAction } from '@plugboard/kernel/contracts';
import { CHANNEL_OPTIONS, columnsOf, isoTime, oneLine } from '../command/channel-options.js';
import { configFile } from '../command/config-option.js';
import { askServers } from '../server/ask-servers.js';

const READY: readonly string[] = ['connected', 'standby'];

/** Lists the channels of the running servers of this machine. */
export const channels: CommandAction = {
  summary: 'Lists the channels of the running servers; exit code 1 if one is not ready',
  options: CHANNEL_OPTIONS,
  async run(args, terminal) {
    const file = configFile(args);
    const found = (await askServers(file, { command: 'channels', entry: args.text('entry') })).channels.map(
      ({ server, entry, platform, account, state, reason, since, waiting, unsent, failed }) => ({
        server,
        entry,
        platform,
        account: account ?? null,
        state,
        reason: reason ?? null,
        since: isoTime(since),
        waiting,
        unsent,
        failed,
      }),
    );
    if (args.has('json')) terminal.print(JSON.stringify({ channels: found }, undefined, 2));
    else if (found.length === 0) terminal.print(`the server of ${file} has no channels`);
    else {
      const isOne = new Set(found.map(({ server }) => server)).size === 1;
      const rows = found.map((one) => [
        isOne ? '' : String(one.server),
        one.entry,
        one.platform,
        oneLine(one.account ?? ''),
        one.state,
        one.since,
        ...[one.waiting, one.unsent, one.failed].map(String),
        oneLine(one.reason ?? '', 200),
      ]);
      terminal.print(
        columnsOf(['server', 'entry', 'platform', 'account', 'state', 'since', 'waiting', 'unsent', 'failed', 'reason'], rows),
      );
    }
    return found.every(({ state }) => READY.includes(state)) ? 0 : 1;
  },
};
