import { type CommandAction, CommandError, UsageError } from '@plugboard/kernel/contracts';
import { CHANNEL_OPTIONS, columnsOf, isoTime, oneLine } from '../command/channel-options.js';
import { configFile } from '../command/config-option.js';
import { askServers } from '../server/ask-servers.js';
import type { OperatorAnswer, OperatorChange } from '../server/operator-request.js';

/** Lets a sender of a channel in by its code, removes one, or lists both. */
export const pair: CommandAction = {
  summary: 'Lets a sender of a channel in by a code, or lists codes and senders',
  positionals: ['[CODE]'],
  options: { ...CHANNEL_OPTIONS, remove: { value: 'SENDER', description: 'let this sender in no longer' } },
  async run(args, terminal) {
    const [code] = args.positionals;
    const sender = args.text('remove');
    if (code !== undefined && sender !== undefined) throw new UsageError('a code and --remove exclude each other');
    const change = changeOf(code, sender);
    const answer = await askServers(configFile(args), { command: 'pair', entry: args.text('entry'), change });
    const [changed] = answer.changed;
    if (change && !changed) {
      const unknown =
        code === undefined ? `no channel has let in the sender "${sender}"` : `no channel waits for the code "${code}"`;
      throw new CommandError(`${unknown}; plugboard pair lists them`);
    }
    if (args.has('json')) terminal.print(JSON.stringify(listsOf(answer), undefined, 2));
    else if (changed)
      terminal.print(`${oneLine(changed.name)} ${sender === undefined ? 'was let in' : 'was removed'} (${changed.entry})`);
    else terminal.print(tablesOf(answer));
    if (answer.left > 0) terminal.note(`${answer.left} more are not shown`);
    return 0;
  },
};

function changeOf(code: string | undefined, sender: string | undefined): OperatorChange | undefined {
  if (code !== undefined) return { kind: 'approve', value: code };
  return sender === undefined ? undefined : { kind: 'remove', value: sender };
}

function listsOf({ requests, paired }: OperatorAnswer) {
  return {
    requests: requests.map(({ code, entry, sender, name, expires }) => ({
      code,
      entry,
      sender,
      name: name ?? null,
      expires: isoTime(expires),
    })),
    paired: paired.map(({ entry, sender, name, since }) => ({ entry, sender, name: name ?? null, since: isoTime(since) })),
  };
}

function tablesOf(answer: OperatorAnswer): string {
  const { requests, paired } = listsOf(answer);
  const waiting = requests.map((one) => [one.code, one.entry, oneLine(one.sender), oneLine(one.name ?? ''), one.expires]);
  const letIn = paired.map((one) => [one.entry, oneLine(one.sender), oneLine(one.name ?? ''), one.since]);
  return [
    waiting.length === 0 ? 'no codes wait' : columnsOf(['code', 'entry', 'sender', 'name', 'expires'], waiting),
    letIn.length === 0 ? 'no senders are paired' : columnsOf(['entry', 'sender', 'name', 'paired since'], letIn),
  ].join('\n\n');
}
