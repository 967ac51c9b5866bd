/** Bodies of requests. */
export const chatStep: Readonly<Record<string, unknown>>;
export const messagesStep: Readonly<Record<string, unknown>>;
