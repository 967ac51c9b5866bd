import { readFileSync } from 'node:fs';

/** A user of the operating system. */
export interface User {
  readonly uid: number;
  readonly gid: number;
  /** Undefined if the user was given by numbers. */
  readonly name?: string;
  readonly home?: string;
}

/** @param user a name of `/etc/passwd`, or `uid:gid`. @returns undefined if there is none. */
export function findUser(user: string): User | undefined {
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(user) ?? [];
  if (uid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  const line = passwd().find((fields) => fields[0] === user);
  if (!line) return undefined;
  const [name = user, , id, group, , home = '/'] = line;
  return { uid: Number(id), gid: Number(group), name, home };
}

function passwd(): readonly (readonly string[])[] {
  try {
    return readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'));
  } catch {
    return []; // systems without this file have no named users
  }
}
