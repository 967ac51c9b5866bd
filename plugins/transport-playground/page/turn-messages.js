import { answerOf } from './turn.js';

/** @typedef {import('./turn.js').Turn} Turn */

/** The conversation as messages of chat completions. @param {readonly Turn[]} turns */
export function messagesOf(turns) {
  return turns.flatMap((turn) => {
    const said = [
      { role: 'user', content: turn.input },
      { role: 'assistant', content: answerOf(turn) },
    ];
    return said.filter(({ content }) => content !== '');
  });
}

/** The conversation as input items of the Responses protocol. @param {readonly Turn[]} turns */
export function inputItemsOf(turns) {
  return messagesOf(turns).map(({ role, content }) => ({
    type: 'message',
    role,
    content: [{ type: role === 'user' ? 'input_text' : 'output_text', text: content }],
  }));
}
