import t from 'tap';
import { accessibility } from './cases/accessibility.js';
import { focus } from './cases/focus.js';
import { layout } from './cases/layout.js';
import { safety } from './cases/safety.js';
import { screenshot } from './cases/screenshot.js';
import { inBrowser } from './support/in-browser.js';

inBrowser(t, { accessibility, focus, layout, safety, screenshot });
