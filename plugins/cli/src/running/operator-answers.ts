import type { Contribution, Server } from '@plugboard/kernel';
import { type Channel, Channels } from '@plugboard/kernel/contracts';
import { MAX_ANSWER, type OperatorAnswer, type OperatorChange, type OperatorRequest } from '../server/operator-request.js';

type Changed = OperatorAnswer['changed'];
type Found = readonly Contribution<Channel>[];

export async function answerOperator(server: Pick<Server, 'extensions'>, request: OperatorRequest): Promise<OperatorAnswer> {
  const all = server.extensions(Channels).all();
  const { command, entry, change } = request;
  const channels = entry === undefined ? all : all.filter(({ name, entry: id }) => name === entry || id === entry);
  const changed = change ? await apply(channels, change) : [];
  const lists = {
    channels: command === 'channels' ? channels.map(({ name, value }) => ({ ...value.status(), entry: name })) : [],
    requests: command === 'pair' ? await rows(channels, ({ pairing }) => pairing?.requests()) : [],
    paired: command === 'pair' ? await rows(channels, ({ pairing }) => pairing?.paired()) : [],
    failed: command === 'outbox' ? await rows(channels, ({ outbox }) => outbox?.failed()) : [],
  };
  return { known: all.map(({ name }) => name), changed, ...fitting(lists) };
}

/** Changes the first channel that knows the value, or all of them. */
async function apply(channels: Found, change: OperatorChange): Promise<Changed> {
  const changed: { entry: string; name: string }[] = [];
  for (const { name: entry, value } of channels) {
    if (change.kind === 'send-all') {
      for (const { id } of (await value.outbox?.failed()) ?? [])
        if (await value.outbox?.send(id)) changed.push({ entry, name: id });
      for (const id of value.outbox?.sendWaiting?.() ?? []) changed.push({ entry, name: id });
      continue;
    }
    const name = await changeOne(value, change);
    if (name !== undefined) return [{ entry, name }];
  }
  return changed;
}

/** @returns what was changed, or undefined if the channel does not know the value. */
async function changeOne(
  { pairing, outbox }: Channel,
  { kind, value }: Exclude<OperatorChange, { kind: 'send-all' }>,
): Promise<string | undefined> {
  if (kind === 'approve') {
    const paired = await pairing?.approve(value);
    return paired && (paired.name === undefined ? paired.sender : `${paired.name} (${paired.sender})`);
  }
  const done = { remove: () => pairing?.remove(value), send: () => outbox?.send(value), drop: () => outbox?.drop(value) };
  return (await done[kind]()) ? value : undefined;
}

async function rows<T extends object>(
  channels: Found,
  read: (channel: Channel) => Promise<readonly T[]> | readonly T[] | undefined,
): Promise<readonly (T & { readonly entry: string })[]> {
  const found = await Promise.all(channels.map(async ({ name, value }) => ({ name, list: (await read(value)) ?? [] })));
  return found.flatMap(({ name, list }) => list.map((row) => ({ ...row, entry: name })));
}

/** The first rows of the lists that fit in an answer, and how many are left out. */
function fitting<T extends Readonly<Record<string, readonly unknown[]>>>(lists: T): T & { readonly left: number } {
  let bytes = 64 * 1024; // what the answer has besides
  let left = 0;
  const fits = (row: unknown) => {
    bytes += Buffer.byteLength(JSON.stringify(row)) + 1;
    if (bytes > MAX_ANSWER) left++;
    return bytes <= MAX_ANSWER;
  };
  const shown = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, list.filter(fits)])) as unknown as T;
  return { ...shown, left };
}
