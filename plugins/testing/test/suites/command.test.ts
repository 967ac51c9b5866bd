import type { CommandAction } from '@plugboard/kernel/contracts';
import type { Command } from '@plugboard/kernel/internal';
import t from 'tap';
import { commandContract } from '../../src/suites/command.js';
import { casesOf, failing } from '../failing.js';

const ACTION: CommandAction = {
  summary: 'Lists the things',
  options: { all: { short: 'a', description: 'also the hidden ones' } },
  run: async () => 0,
};

const found = (command: Command) => failing(casesOf((test) => commandContract(test, { command })));

t.test('passes correct commands', async (t) => {
  t.same(await found(ACTION), []);
  t.same(await found({ summary: 'Manages things', actions: { list: ACTION } }), []);
});

t.test('finds each broken promise', async (t) => {
  const options = (change: CommandAction['options']) =>
    found({ summary: 'Manages things', actions: { list: { ...ACTION, options: change } } });
  t.same(await found({ ...ACTION, summary: 'Lists the things.' }), [
    'summarizes itself and each action in one line without a full stop',
  ]);
  t.same(await found({ summary: 'Manages things', actions: {} }), ['has at least one action']);
  t.same(await options({ all: { description: '' } }), ['describes every option']);
  t.same(await options({ config: { description: 'a file' } }), ['leaves --help, --config and --entry to the program']);
  t.same(await options({ all: { short: 'c', description: 'all' } }), ['gives options different letters, one each']);
  t.same(await options({ all: { short: 'all', description: 'all' } }), ['gives options different letters, one each']);
});
