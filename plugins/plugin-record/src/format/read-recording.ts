import type { Message } from '@plugboard/kernel';
import { compileSchema, parseJson, type ToolDeclaration, type ValueValidator } from '@plugboard/kernel/contracts';
import { isLineType, type LineType, schemaOf } from './line-schema.js';
import {
  type AnswerLine,
  type Attempt,
  type EndLine,
  type Line,
  type Recording,
  type RequestLine,
  type ToolLine,
  type TurnLine,
  VERSION,
} from './recording.js';

/** The text is not a recording that can be replayed. The message is a clause about the file. */
export class UnreadableRecording extends Error {
  override readonly name = 'UnreadableRecording';
}

/**
 * Reads a recording.
 *
 * @throws UnreadableRecording, and no other error.
 */
export function readRecording(text: string): Recording {
  const reader = new RecordingReader();
  let number = 0;
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    number++;
    reader.read(lineAt(number, text.slice(start, end), found < 0), number);
    start = end + 1;
  }
  return reader.recording();
}

class RecordingReader {
  readonly #attempts: Attempt[] = [];
  readonly #tools: ToolLine[] = [];
  #turn: TurnLine | undefined;
  #request: RequestLine | undefined;
  #end: EndLine | undefined;

  read(line: Line, number: number): void {
    if ((line.type === 'turn') !== (number === 1)) throw faulty(number, 'a recording begins with one line "turn"');
    if (this.#end) throw faulty(number, 'nothing can follow the line "end"');
    if (this.#request && line.type !== 'model_answer') throw faulty(number, 'the answer to the request before it is missing');
    if (line.type === 'turn') this.#turn = line;
    else if (line.type === 'model_request') this.#request = line;
    else if (line.type === 'model_answer') this.#answer(line, number);
    else if (line.type === 'tool') this.#tools.push(line);
    else this.#end = line;
  }

  recording(): Recording {
    if (!this.#turn) throw new UnreadableRecording('is empty');
    if (!this.#end) throw new UnreadableRecording('is cut: its line "end" is missing');
    return { turn: this.#turn, attempts: this.#attempts, tools: this.#tools, end: this.#end };
  }

  #answer({ events, error, milliseconds, ...answer }: AnswerLine, number: number): void {
    const request = this.#request;
    if (request?.step !== answer.step || request.attempt !== answer.attempt)
      throw faulty(number, 'it does not answer the request before it');
    const { step, attempt, connection, model, params } = request;
    const before = this.#attempts.at(-1);
    if (request.kept > (before?.messages.length ?? 0))
      throw faulty(number - 1, `"kept" is ${request.kept}, and the request before it has fewer messages`);
    const messages: readonly Message[] = [...(before?.messages.slice(0, request.kept) ?? []), ...request.messages];
    const tools: readonly ToolDeclaration[] = request.tools ?? before?.tools ?? [];
    this.#request = undefined;
    this.#attempts.push({ step, attempt, connection, model, messages, tools, params, events, error, milliseconds });
  }
}

/** @param isLast whether nothing follows, not even the end of the line. */
function lineAt(number: number, text: string, isLast: boolean): Line {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    if (isLast && number > 1) throw new UnreadableRecording(`is cut in line ${number}`);
    throw faulty(number, 'it is not JSON');
  }
  if (typeof value !== 'object' || value === null) throw faulty(number, 'it is not an object');
  const { type, version } = value as { type?: unknown; version?: unknown };
  if (!isLineType(type)) throw faulty(number, 'its "type" is unknown');
  if (type === 'turn' && version !== VERSION) {
    const found = typeof version === 'number' ? `has the version ${version}` : 'has no version';
    throw new UnreadableRecording(`${found} of the format, and this program reads version ${VERSION}`);
  }
  const [mistake] = validatorOf(type)(value);
  if (mistake) throw faulty(number, mistake.message);
  return value as Line;
}

const validators = new Map<LineType, ValueValidator>();

function validatorOf(type: LineType): ValueValidator {
  const known = validators.get(type) ?? compileSchema(schemaOf(type));
  validators.set(type, known);
  return known;
}

function faulty(line: number, why: string): UnreadableRecording {
  return new UnreadableRecording(`is not a recording: line ${line}: ${why.slice(0, 300)}`);
}
