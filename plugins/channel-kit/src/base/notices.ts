/** What a channel itself says to people. */
export const NOTICES = {
  help: [
    'Write to me, and the agent answers.',
    '/new begins a new conversation.',
    '/stop ends the answer, and drops what waits.',
    '/agent lists the agents, /agent NAME chooses one.',
    '/help shows this.',
  ].join('\n'),
  newSession: 'A new conversation begins.',
  noAnswer: 'The agent gave no answer.',
  stopped: (dropped: number) => `Stopped.${droppedMessages(dropped)}`,
  nothingRuns: (dropped: number) => `Nothing is running.${droppedMessages(dropped)}`,
  agents: (names: readonly string[], current: string) =>
    [
      'Agents:',
      ...names.map((name) => (name === current ? `- ${name} (answers here)` : `- ${name}`)),
      'Choose one with /agent NAME.',
    ].join('\n'),
  agentChosen: (name: string) => `The agent ${name} answers here now.`,
  noSuchAgent: (name: string, names: readonly string[]) => `There is no agent "${name}" here. Agents: ${names.join(', ')}.`,
  pair: (code: string) => `You are not paired yet. An operator of this server runs: plugboard pair ${code}`,
  pairInPrivate: 'I do not know you yet. Write to me in private to be paired.',
  paired: 'You are paired now. Write to me.',
  full: (limit: number) =>
    `Your message was not taken: ${limit} messages wait here. Send it again later, or end the answer with /stop.`,
  unsupported: (what: string) => `I cannot read ${what}. Send text, or images (PNG, JPEG, GIF or WebP, up to 10 MB).`,
  noImages: (agent: string) => `The agent ${agent} cannot read images. Send text.`,
  badImage: 'I cannot read this image. Send PNG, JPEG, GIF or WebP, up to 10 MB.',
  noAgent: (agent: string) => `The agent ${agent} is not available. Choose another one with /agent.`,
  /** As for an idempotency key whose tools had begun. */
  interrupted:
    'The server was stopped while tools ran for your message, so it is unknown what they did. It is not run again by itself.',
  crashed: (times: number) => `The server ended ${times} times while it answered your message, so it gave up.`,
} as const;

function droppedMessages(count: number): string {
  if (count === 0) return '';
  return count === 1 ? ' 1 waiting message was dropped.' : ` ${count} waiting messages were dropped.`;
}
