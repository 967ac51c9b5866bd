import { statSync } from 'node:fs';
import type { Launch } from './launch.js';

/** Explains why a program could not be started: ENOENT has three different reasons. */
export function cannotRun({ command, cwd, user }: Launch, error: NodeJS.ErrnoException): string {
  const isPath = /[/\\]/.test(command);
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    return `"${command}" cannot run in ${cwd}, which is not a folder: correct \`cwd\``;
  if (error.code === 'EPERM' && user)
    return `"${command}" cannot run as the user ${user.name ?? user.uid}: run Plugboard as root, or leave out \`user\``;
  if (error.code === 'ENOENT' && /\s/.test(command))
    return `"${command}" was not found: put the program in \`command\` and its arguments in \`args\``;
  if (error.code === 'ENOENT' && !isPath) return `"${command}" was not found on the PATH: install it, or write its path`;
  if (error.code === 'ENOENT' && statSync(command, { throwIfNoEntry: false }))
    return `"${command}" names an interpreter in its first line that was not found`;
  if (error.code === 'ENOENT') return `"${command}" does not exist`;
  if (error.code === 'EACCES') return `"${command}" is not executable: change its mode, or run its interpreter as \`command\``;
  return `"${command}" could not be started: ${error.message}`;
}
