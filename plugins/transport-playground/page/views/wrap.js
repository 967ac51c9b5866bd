import { tabStorage } from '../tab-storage.js';

/** Where the tab remembers whether lines of code are wrapped. */
const WRAP = 'plugboard.wrap';

const root = document.documentElement;
root.toggleAttribute('data-wrap', tabStorage.get(WRAP) !== undefined);

/** A button that wraps the lines of all blocks of code, or scrolls them. */
export function wrapButton() {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'wrap-code';
  button.textContent = 'Wrap';
  button.title = 'Wrap long lines';
  button.ariaPressed = String(root.hasAttribute('data-wrap'));
  button.addEventListener('click', toggleWrap);
  return button;
}

function toggleWrap() {
  const isOn = root.toggleAttribute('data-wrap');
  if (isOn) tabStorage.set(WRAP, '');
  else tabStorage.delete(WRAP);
  for (const button of document.querySelectorAll('.wrap-code')) button.ariaPressed = String(isOn);
}
