/** Commands that plugins add to `plugboard`. */
export {
  type Command,
  type CommandAction,
  type CommandArguments,
  CommandError,
  type CommandFamily,
  type CommandOption,
  Commands,
  type CommandTerminal,
  UsageError,
} from './command/command.js';
