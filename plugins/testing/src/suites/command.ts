import assert from 'node:assert/strict';
import type { CommandAction } from '@plugboard/kernel/contracts';
import type { Command } from '@plugboard/kernel/internal';
import { Contract, type DeclareTest } from '../contract/contract.js';

/** The options of `commandContract`. @experimental */
export interface CommandContractOptions {
  readonly command: Command;
}

/** Declares the tests of a subcommand (`Command`), as help and parser need it. @experimental */
export function commandContract(test: DeclareTest, { command }: CommandContractOptions): void {
  const contract = new Contract('A command', test);
  const actions: readonly (readonly [string, CommandAction])[] =
    'actions' in command ? Object.entries(command.actions) : [['', command]];

  contract.add('summarizes itself and each action in one line without a full stop', 'CommandAction.summary', async () => {
    const summaries = [command.summary, ...actions.map(([, action]) => action.summary)];
    for (const summary of summaries) assert.match(summary, /^\S.*[^.\s]$/, `the summary is ${JSON.stringify(summary)}`);
  });
  contract.add('has at least one action', 'CommandFamily', async () => {
    assert.notEqual(actions.length, 0, 'it has no actions');
  });
  contract.add('describes every option', 'CommandOption.description', async () => {
    for (const [action, { options }] of actions) {
      for (const [name, { description }] of Object.entries(options)) {
        assert.match(description, /\S/, `the option --${name} of "${action}" has no description`);
      }
    }
  });
  contract.add('leaves --help, --config and --entry to the program', 'CommandAction.options', async () => {
    for (const [action, { options }] of actions) {
      const taken = ['help', 'config', 'entry'].find((name) => name in options);
      assert.ok(taken === undefined, `"${action}" defines --${taken}`);
    }
  });
  contract.add('gives options different letters, one each', 'CommandOption.short', async () => {
    for (const [action, { options }] of actions) {
      const letters = ['h', 'c', ...Object.values(options).flatMap(({ short }) => short ?? [])];
      for (const letter of letters) assert.match(letter, /^[a-zA-Z]$/, `"${action}" has the short option "${letter}"`);
      const twice = letters.find((letter, i) => letters.indexOf(letter) !== i);
      assert.ok(twice === undefined, `"${action}" uses -${twice} twice (-h and -c belong to the program)`);
    }
  });
}
