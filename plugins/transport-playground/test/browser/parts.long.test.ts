import t from 'tap';
import { agentCard } from './cases/agent-card.js';
import { code } from './cases/code.js';
import { images } from './cases/images.js';
import { markdown } from './cases/markdown.js';
import { nested } from './cases/nested.js';
import { timeline } from './cases/timeline.js';
import { inBrowser } from './support/in-browser.js';

inBrowser(t, { agentCard, code, images, markdown, nested, timeline });
