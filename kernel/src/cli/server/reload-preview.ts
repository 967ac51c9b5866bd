import { changesBetween } from '../../host/reload/changes.js';
import { describeChange } from '../../host/reload/describe-change.js';
import type { Server } from '../../host/server.js';
import { CommandError } from '../command/command.js';
import { digested, type RunningConfig, runningConfigs } from './running-config.js';

/** What a reload of the running servers of this file would do. */
interface ReloadPreview {
  readonly lines: readonly string[];
  /** Whether a server would refuse the file, because something cannot change while it runs. */
  readonly isRefused: boolean;
}

/** @throws CommandError if no server of the file runs. */
export function previewReload(server: Server): ReloadPreview {
  const running = server.file === undefined ? [] : runningConfigs(server.file);
  if (running.length === 0) {
    throw new CommandError(
      'no running server of this file was found; --diff compares with servers on this machine, of the same user and with the same TMPDIR',
    );
  }
  const previews = running.map((one) => previewOne(server, one));
  return { lines: previews.flatMap(({ lines }) => lines), isRefused: previews.some(({ isRefused }) => isRefused) };
}

function previewOne({ image }: Server, { pid, since, salt, image: inForce }: RunningConfig): ReloadPreview {
  const changes = changesBetween(inForce, digested(image, salt));
  const fixed = changes.filter(({ needsRestart }) => needsRestart);
  const list = (some: typeof changes) => some.map((change) => `  ${describeChange(change)}`);
  const about = `server ${pid}, configured ${since}`;
  if (fixed.length > 0) {
    const why = `${about}: a reload would be refused, because these cannot change while the server runs; restart it`;
    return { lines: [why, ...list(fixed)], isRefused: true };
  }
  if (changes.length === 0) return { lines: [`${about}: a reload would change nothing`], isRefused: false };
  return { lines: [`${about}: a reload would change`, ...list(changes)], isRefused: false };
}
