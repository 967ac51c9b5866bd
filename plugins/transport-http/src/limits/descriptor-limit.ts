import { readFileSync } from 'node:fs';

/** Returned if the system reports no limit. */
const UNLIMITED = 1_048_576;

/** The number of files and sockets that this process may have open. */
export function descriptorLimit(): number {
  const text = fromProc() ?? fromReport();
  const limit = Number(text);
  return Number.isInteger(limit) && limit > 0 ? limit : UNLIMITED;
}

function fromProc(): string | undefined {
  try {
    return /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  } catch {
    return undefined; // not Linux
  }
}

/** Slower, but works on every Unix. */
function fromReport(): string | undefined {
  Object.assign(process.report, { excludeNetwork: true }); // would look up host names; the types do not know it
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  return userLimits?.open_files?.soft?.toString();
}
