import { answerOf } from './turn.js';

/** @typedef {import('./turn.js').Turn} Turn */

/** The conversation as messages of chat completions. @param {readonly Turn[]} turns */
export function messagesOf(turns) {
  return saidIn(turns).map(({ role, text, images }) => {
    if (images.length === 0) return { role, content: text };
    const parts = images.map((url) => ({ type: 'image_url', image_url: { url } }));
    return { role, content: text === '' ? parts : [{ type: 'text', text }, ...parts] };
  });
}

/** The conversation as input items of the Responses protocol. @param {readonly Turn[]} turns */
export function inputItemsOf(turns) {
  return saidIn(turns).map(({ role, text, images }) => {
    const texts = text === '' ? [] : [{ type: role === 'user' ? 'input_text' : 'output_text', text }];
    const parts = images.map((url) => ({ type: 'input_image', image_url: url }));
    return { type: 'message', role, content: [...texts, ...parts] };
  });
}

/** @param {readonly Turn[]} turns */
function saidIn(turns) {
  return turns.flatMap((turn) => {
    const said = [
      { role: 'user', text: turn.input, images: turn.images },
      { role: 'assistant', text: answerOf(turn), images: [] },
    ];
    return said.filter(({ text, images }) => text !== '' || images.length > 0);
  });
}
