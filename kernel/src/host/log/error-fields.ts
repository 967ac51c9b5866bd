import { stdSerializers } from 'pino';

/** Characters of a text that are logged. A longer line could exceed the buffer, and be dropped. */
const TEXT_LIMIT = 32 * 1024;
/** Errors and their causes. */
const DEPTH_LIMIT = 8;

/**
 * Makes the field `err` of a log line from what was thrown. Never throws: code that throws anything
 * at all, such as an object whose properties cannot be read, must not escape its log line.
 */
export function errorFields(error: unknown): unknown {
  try {
    return truncateFields(stdSerializers.errWithCause(error as Error), DEPTH_LIMIT);
  } catch {
    return essentials(error); // a frozen error, or one of whose properties cannot be read
  }
}

function essentials(error: unknown): object {
  try {
    const { name, message, stack } = error as Error;
    return { type: truncate(String(name)), message: truncate(String(message)), stack: truncate(String(stack)) };
  } catch {
    return { type: 'unreadable', message: 'what was thrown cannot be read: its properties throw' };
  }
}

/** Copies a value with its long texts truncated, those of causes too. */
function truncateFields(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return truncate(value);
  if (typeof value !== 'object' || value === null || !('message' in value)) return value;
  const fields: Record<string, unknown> = {};
  for (const key in value) {
    const field = (value as Record<string, unknown>)[key];
    if (field === undefined || (key === 'cause' && depth === 0)) continue;
    fields[key] = typeof field === 'string' ? truncate(field) : key === 'cause' ? truncateFields(field, depth - 1) : field;
  }
  return fields;
}

function truncate(text: string): string {
  return text.length <= TEXT_LIMIT ? text : `${text.slice(0, TEXT_LIMIT).toWellFormed()}… (${text.length} characters)`;
}
