/** What is offered of a list of tools: their number, and characters of them as JSON. */
export const MAX_TOOLS = 1000;
export const MAX_LIST = 4 * 2 ** 20;
const MAX_PAGES = 1000;

/** The entries of a server's list, unchecked. */
export interface ToolList {
  readonly listed: readonly unknown[];
  /** Whether there are more, which are not offered (S-75). */
  readonly isCut: boolean;
  /** A reason of the transport not to offer a tool, by its inputSchema. */
  readonly faultOf?: (inputSchema: unknown) => string | undefined;
}

/**
 * Reads all pages of a list of tools, up to what is offered.
 *
 * @param request asks for one page. @param cursor that of the page before; undefined for the first.
 */
export async function readList(
  request: (cursor: string | undefined) => Promise<Readonly<Record<string, unknown>>>,
): Promise<ToolList> {
  const listed: unknown[] = [];
  let size = 0;
  let cursor: string | undefined;
  for (let pages = 1; pages <= MAX_PAGES; pages++) {
    const page = await request(cursor);
    if (!Array.isArray(page.tools)) throw new Error('its list of tools is not an array');
    for (const tool of page.tools) {
      size += sizeOf(tool);
      if (listed.length >= MAX_TOOLS || size > MAX_LIST) return { listed, isCut: true };
      listed.push(tool);
    }
    if (typeof page.nextCursor !== 'string' || page.nextCursor === '') return { listed, isCut: false };
    cursor = page.nextCursor;
  }
  return { listed, isCut: true };
}

/** Characters as JSON. What is nested too deeply to be written is larger than any list. */
function sizeOf(tool: unknown): number {
  try {
    return JSON.stringify(tool)?.length ?? 0;
  } catch {
    return MAX_LIST + 1;
  }
}
