import { invalidValue } from '@plugboard/openai-protocol';

/**
 * The content of a compaction item: the summary of a conversation, as one opaque text. It is not
 * secret and not signed: a caller could as well send the summary as a message.
 */
export function encodeSummary(summary: string): string {
  return Buffer.from(JSON.stringify({ v: 1, summary })).toString('base64url');
}

/** @throws ProtocolError 400 for a text that this server did not make. */
export function decodeSummary(content: string, param: string): string {
  try {
    const { v, summary } = JSON.parse(Buffer.from(content, 'base64url').toString('utf8'));
    if (v === 1 && typeof summary === 'string') return summary;
  } catch {
    // refused below
  }
  throw invalidValue(param, 'it is not the content of a compaction item of this server');
}

/** How a summary is shown to a model, in front of the next user message. */
export function summaryText(summary: string): string {
  return `<summary>\nWhat was said before in this conversation, in short:\n\n${summary}\n</summary>\n\n`;
}
