/**
 * @typedef {object} TextItem
 * @property {'text' | 'reasoning'} kind
 * @property {string} id
 * @property {string} text
 * @property {number} [ms] how long the model reasoned, if that is known
 *
 * @typedef {object} ToolItem a tool call. The server runs it, or leaves it to the client
 *   (`isOurs`).
 * @property {'tool'} kind
 * @property {string} id
 * @property {string} server the tool's entry in the configuration; empty if unknown
 * @property {string} name
 * @property {string} arguments JSON text, perhaps incomplete
 * @property {string | null} output
 * @property {string | null} error
 * @property {'running' | 'ok' | 'failed' | 'unknown' | 'stopped' | 'waiting' | 'approved' |
 *   'denied'} status the last three are of a call that a person decides about
 * @property {string} approvalId of the request for approval; empty if nobody was asked
 * @property {boolean} isOurs
 * @property {string} callId of a call that is left to the client
 * @property {number | undefined} ms duration, if that is known
 * @property {string} progress the last progress message of the tool
 * @property {import('./nested-turns.js').NestedTurn} [nested] the turn of the agent that it asks
 *
 * @typedef {TextItem | ToolItem} TurnItem
 *
 * @typedef {object} Usage
 * @property {number} input_tokens
 * @property {number} output_tokens
 * @property {number} total_tokens
 *
 * @typedef {object} Turn one message of the user, and everything it caused
 * @property {string} input
 * @property {string[]} images of the message, as URLs
 * @property {TurnItem[]} items
 * @property {'sending' | 'queued' | 'running' | 'completed' | 'incomplete' | 'failed'} status
 * @property {number} queuePosition
 * @property {string} reason why it is incomplete
 * @property {{ code?: string | null, message: string } | undefined} error
 * @property {string} responseId
 * @property {string[]} responses all of the turn: it has another one after each decision
 * @property {number} sequence of the last applied event; -1 before the first
 * @property {Usage | undefined} usage
 * @property {number} startedAt of its last part, on the clock of the page
 * @property {number | undefined} ms duration, if it has ended and that is known
 * @property {Decision[]} decisions about its calls, which the next request sends
 * @property {readonly import('./turn-facts.js').TurnFacts[]} facts what the server knows of it
 * @property {number} number of the turn in its session, from 1; 0 while it is unknown
 * @property {number} lastNumber that of its last part: a decision begins another one in the session
 * @property {number} after the number of the last stored turn before it
 * @property {boolean} isKept whether the session has it: it ended well, or at a limit
 * @property {boolean} isCut whether its end is unknown, because the connection was lost
 * @property {boolean} isOther whether another tab or client runs it
 * @property {number} version grows with each change
 *
 * @typedef {object} Decision a person's decision, as an item of the protocol
 * @property {'mcp_approval_response'} type
 * @property {string} approval_request_id
 * @property {boolean} approve
 *
 * @typedef {{ type: string, [field: string]: any }} ProtocolEvent an event or item of the Responses
 *   protocol
 */

/** Ends of a turn that leave no trace in its session. */
const DROPPED = ['cancelled', 'interrupted', 'shutdown'];

const ENDS = ['response.completed', 'response.failed', 'response.incomplete'];

/** @param {string} input @param {Partial<Turn>} [fields] @returns {Turn} */
export function newTurn(input, fields) {
  return {
    input,
    images: [],
    items: [],
    status: 'sending',
    queuePosition: 0,
    reason: '',
    error: undefined,
    responseId: '',
    responses: [],
    sequence: -1,
    usage: undefined,
    startedAt: performance.now(),
    ms: undefined,
    decisions: [],
    facts: [],
    number: 0,
    lastNumber: 0,
    after: 0,
    isKept: false,
    isCut: false,
    isOther: false,
    version: 0,
    ...fields,
  };
}

/** @param {ProtocolEvent} event */
export function endsTurn(event) {
  return ENDS.includes(event.type);
}

/** @param {Turn} turn */
export function isRunning({ status }) {
  return status === 'sending' || status === 'queued' || status === 'running';
}

/** Whether a turn has ended and the server does not have it. @param {Turn} turn */
export function isDropped(turn) {
  return !isRunning(turn) && !turn.isKept;
}

/** Whether a message of the user began the turn. @param {Turn} turn */
export function isAsked({ input, images }) {
  return input !== '' || images.length > 0;
}

/** The answer's text. @param {Turn} turn */
export function answerOf({ items }) {
  const texts = items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
  return texts.join('\n\n').trim();
}

/** What a screen reader says at the end of a turn. @param {Turn} turn */
export function spokenTurn(turn) {
  const answer = answerOf(turn);
  if (turn.status === 'failed') return `The turn failed. ${turn.error?.message ?? ''}`;
  if (turn.status === 'incomplete') return `The turn was stopped. ${answer}`;
  const waiting = waitingCalls(turn).length;
  if (waiting > 0) return `${waiting === 1 ? 'A tool call needs' : `${waiting} tool calls need`} your approval. ${answer}`;
  return `Answer: ${answer.slice(0, 1000)}`;
}

/**
 * Ends a turn.
 * @param {Turn} turn
 * @param {Record<string, any>} response of the last event, or its fields if there was none
 */
export function endTurn(turn, { status, usage, error, incomplete_details }) {
  turn.version++;
  turn.status = status;
  turn.usage = sumOf(turn.usage, usage ?? undefined);
  turn.error = error ?? undefined;
  turn.reason = incomplete_details?.reason ?? '';
  if (status === 'completed') turn.decisions = [];
  const isStored = status === 'completed' || (status === 'incomplete' && !DROPPED.includes(turn.reason));
  if (isStored) turn.isKept = true;
  turn.facts = turn.facts.map((facts, at) => (at < turn.facts.length - 1 ? facts : { ...facts, isDropped: !isStored }));
  turn.ms = timeOf(turn) ?? performance.now() - turn.startedAt;
  if (!turn.isKept) turn.number = turn.lastNumber = 0; // the next turn gets it
  for (const item of turn.items) {
    if (item.kind === 'tool' && item.status === 'running') item.status = item.isOurs ? 'ok' : 'stopped';
  }
}

/**
 * How long a turn took by the clock of the server; undefined if that is not known. @param {Turn}
 * turn
 */
export function timeOf({ facts }) {
  const times = facts.map(({ duration_ms }) => duration_ms ?? undefined);
  return times.reduce((sum, ms) => (sum === undefined || ms === undefined ? (sum ?? ms) : sum + ms), undefined);
}

/** @param {Usage | undefined} one @param {Usage | undefined} other */
export function sumOf(one, other) {
  if (!one || !other) return one ?? other;
  return {
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    total_tokens: one.total_tokens + other.total_tokens,
  };
}

/** The calls that wait for a person. @param {Turn} turn @returns {ToolItem[]} */
export function waitingCalls({ items }) {
  return items.filter((item) => item.kind === 'tool').filter(({ status }) => status === 'waiting');
}

/**
 * Takes a person's decision. Nothing runs before all calls are decided, so one request sends all
 * decisions.
 * @param {Turn} turn @param {ToolItem} call @param {boolean} approve
 * @returns {boolean} whether no call waits any more
 */
export function decideCall(turn, call, approve) {
  turn.version++;
  call.status = approve ? 'approved' : 'denied';
  turn.decisions.push({ type: 'mcp_approval_response', approval_request_id: call.approvalId, approve });
  return waitingCalls(turn).length === 0;
}

/** Reads the events of a turn again, from the first one. @param {Turn} turn */
export function rereadTurn(turn) {
  continueTurn(turn);
  turn.status = 'running';
  if (!turn.isKept) turn.items = [];
}

/**
 * Continues a turn whose calls were decided: events of another response follow. @param {Turn} turn
 */
export function continueTurn(turn) {
  turn.version++;
  turn.status = 'sending';
  turn.facts = turn.facts.filter(({ isDropped }) => !isDropped); // more will follow
  turn.sequence = -1;
  turn.error = undefined;
  turn.isCut = false;
  turn.reason = '';
  turn.startedAt = performance.now();
  turn.ms = undefined;
}

/**
 * The server has denied calls that were approved here, for example as their time was over.
 * @param {Turn} turn
 */
export function denyDecided(turn) {
  turn.version++;
  for (const decision of turn.decisions) decision.approve = false;
  for (const item of turn.items) if (item.kind === 'tool' && item.status === 'approved') item.status = 'denied';
}

/**
 * Applies an event of a later turn to an earlier one. A message overtakes the calls that wait, and
 * denies them; but if it is a line that approves them, they run in its turn.
 * @param {Turn} turn @param {ProtocolEvent} event
 */
export function applyToEarlier(turn, { type, item: { approval_request_id: approved } = {} }) {
  const chosen = turn.status === 'completed' ? turn.decisions.map((decision) => decision.approval_request_id) : [];
  for (const item of turn.items) {
    if (item.kind !== 'tool') continue;
    const isOvertaken = type === 'response.created' && (item.status === 'waiting' || chosen.includes(item.approvalId));
    const isApproved = item.status === 'denied' && item.approvalId === approved;
    if (!isOvertaken && !isApproved) continue;
    turn.version++;
    item.status = isApproved ? 'approved' : 'denied';
  }
}
