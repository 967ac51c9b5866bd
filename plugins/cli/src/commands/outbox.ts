import { type CommandAction, type CommandArguments, CommandError, UsageError } from '@plugboard/kernel/contracts';
import { CHANNEL_OPTIONS, columnsOf, isoTime, oneLine } from '../command/channel-options.js';
import { configFile } from '../command/config-option.js';
import { askServers } from '../server/ask-servers.js';
import type { OperatorChange } from '../server/operator-request.js';

/** Lists replies of channels that failed for good, sends them again, or drops them. */
export const outbox: CommandAction = {
  summary: 'Lists replies of channels that failed for good; send ID, send --all, drop ID',
  positionals: ['[ACTION]', '[ID]'],
  options: { ...CHANNEL_OPTIONS, all: { description: 'with send: all of them, and those that wait for their next attempt' } },
  async run(args, terminal) {
    const change = changeOf(args);
    const answer = await askServers(configFile(args), { command: 'outbox', entry: args.text('entry'), change });
    const count = answer.changed.length;
    if (change && change.kind !== 'send-all' && count === 0) {
      throw new CommandError(`no failed reply has the id "${change.value}"; plugboard outbox lists them`);
    }
    const failed = answer.failed.map(({ id, entry, chat, text, reason, attempts, failedAt }) => ({
      id,
      entry,
      chat,
      text,
      reason,
      attempts,
      failed_at: isoTime(failedAt),
    }));
    if (args.has('json')) terminal.print(JSON.stringify({ failed }, undefined, 2));
    else if (change)
      terminal.print(`${count} ${count === 1 ? 'reply' : 'replies'} ${change.kind === 'drop' ? 'dropped' : 'sent again'}`);
    else if (failed.length === 0) terminal.print('no replies have failed');
    else {
      const rows = failed.map((one) => [
        one.id,
        one.entry,
        oneLine(one.chat),
        String(one.attempts),
        one.failed_at,
        oneLine(one.reason),
        oneLine(one.text, 40),
      ]);
      terminal.print(columnsOf(['id', 'entry', 'chat', 'attempts', 'failed at', 'reason', 'text'], rows));
    }
    if (answer.left > 0) terminal.note(`${answer.left} more are not shown; send or drop some of these first`);
    return 0;
  },
};

/** @throws UsageError */
function changeOf(args: CommandArguments): OperatorChange | undefined {
  const [action, id] = args.positionals;
  const all = args.has('all');
  if (action === undefined && !all) return undefined;
  if (action !== 'send' && action !== 'drop')
    throw new UsageError(
      action === undefined ? '--all needs the action send' : `plugboard outbox has no action "${action}"; known: send or drop`,
    );
  if (all && (action === 'drop' || id !== undefined)) throw new UsageError('--all is only for send, without an ID');
  if (all) return { kind: 'send-all' };
  if (id === undefined) throw new UsageError(`plugboard outbox ${action} needs ID${action === 'send' ? ' or --all' : ''}`);
  return { kind: action, value: id };
}
