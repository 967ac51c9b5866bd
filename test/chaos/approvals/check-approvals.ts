import type { Message } from '@plugboard/kernel';
import type { AskedCall } from './asker.js';
import type { RunEvent } from './deadly-tool.js';

/** What became of all calls. The lists are empty if the server kept what it promises. */
export interface ApprovalVerdict {
  /** Calls whose request for approval was stored. */
  asked: number;
  /** Calls whose decision was confirmed to its client. */
  decided: number;
  /** Approved calls whose result is in the session. */
  run: number;
  denied: number;
  /** Calls that write and were cut after they had been started: the model reads that. */
  unknown: number;
  /** Those of them that were killed between the note in the store and the tool's first line. */
  notBegun: number;
  /** Calls that read and began again after a kill. */
  repeated: number;
  /** Approved, and neither run nor reported as cut. */
  lost: string[];
  /** Run twice, against AP-5. */
  doubled: string[];
  /** Run without an approval. */
  unapproved: string[];
  /** Anything else that cannot be. */
  wrong: string[];
}

/**
 * Compares what clients decided with what ran, and with what the sessions say. It knows nothing of
 * the code.
 */
export function checkApprovals(
  calls: Iterable<AskedCall>,
  runs: readonly RunEvent[],
  results: ReadonlyMap<string, string>,
): ApprovalVerdict {
  const verdict: ApprovalVerdict = {
    asked: 0,
    decided: 0,
    run: 0,
    denied: 0,
    unknown: 0,
    notBegun: 0,
    repeated: 0,
    lost: [],
    doubled: [],
    unapproved: [],
    wrong: [],
  };
  const runsOf = Map.groupBy(runs, ({ name }) => name);
  for (const call of calls) checkCall(call, runsOf.get(call.name) ?? [], results.get(call.name), verdict);
  return verdict;
}

function checkCall(call: AskedCall, runs: readonly RunEvent[], result: string | undefined, verdict: ApprovalVerdict): void {
  const { name, effect, confirmed } = call;
  const begun = runs.filter(({ what }) => what === 'begin');
  const hasEnded = runs.some(({ what }) => what === 'end');
  const mayHaveRun = confirmed ?? (call.approve || call.isContested);
  if (result !== undefined) verdict.asked++;
  if (confirmed !== undefined) verdict.decided++;
  if (begun.length > 0 && !mayHaveRun) verdict.unapproved.push(name);

  const lives = new Set(begun.map(({ life }) => life));
  if (begun.length > (effect === 'write' ? 1 : lives.size))
    verdict.doubled.push(`${name} (${effect}) began ${begun.length} times`);
  else if (begun.length > 1) verdict.repeated++;
  if (new Set(runs.map(({ key }) => key)).size > 1) verdict.doubled.push(`${name} ran with two keys`);

  if (result === undefined) {
    if (confirmed === true) verdict.lost.push(`${name}: approved, without a result`);
    else if (begun.length > 0) verdict.wrong.push(`${name}: ran, without a result`);
  } else if (result === `result of ${name}`) {
    verdict.run++;
    if (!hasEnded) verdict.wrong.push(`${name}: has a result of a run that did not end`);
  } else if (result.includes('Whether it took effect is unknown')) {
    verdict.unknown++;
    if (begun.length === 0) verdict.notBegun++;
    if (effect !== 'write') verdict.wrong.push(`${name}: could have run again`);
  } else if (result.startsWith('A person denied the call.')) {
    verdict.denied++;
    if (confirmed === true) verdict.lost.push(`${name}: approved, and denied to the model`);
    else if (call.approve && !call.isContested) verdict.wrong.push(`${name}: denied by nobody`);
    if (begun.length > 0) verdict.wrong.push(`${name}: denied to the model, and run`);
  } else verdict.wrong.push(`${name}: ${result}`);
}

/** The results of the calls in a session, by the names in their arguments. */
export function resultsIn(messages: readonly Message[]): Map<string, string> {
  const names = new Map<string, string>();
  const results = new Map<string, string>();
  for (const message of messages) {
    if (message.role === 'assistant') {
      for (const call of message.tool_calls ?? []) {
        if (call.type === 'function') names.set(call.id, JSON.parse(call.function.arguments).name);
      }
    }
    if (message.role === 'tool') results.set(names.get(message.tool_call_id) ?? message.tool_call_id, String(message.content));
  }
  return results;
}
