// Runs after `npm ci` and `npm install`. Node.js is one of the packages that npm installs here, so
// npm itself may run on an older one.
const REQUIRED = 24;

const majorOf = (version) => Number(/^v(\d+)/.exec(version)?.[1]);
const nodeOfNpm = /\bnode\/(v[\d.]+)/.exec(process.env.npm_config_user_agent ?? '')?.[1] ?? process.version;

// npm puts node_modules/.bin first in the PATH of a script, so this is the Node.js that `npm start`
// uses.
if (majorOf(process.version) < REQUIRED) {
  console.log(
    `Plugboard needs Node.js ${REQUIRED} or newer, found ${process.version}. Run npm without --ignore-scripts, or install Node.js ${REQUIRED}.`,
  );
} else if (majorOf(nodeOfNpm) < REQUIRED) {
  console.log(
    `npm runs on Node.js ${nodeOfNpm}, which is fine: Plugboard runs on ${process.version}, which npm installed into node_modules/.bin.`,
  );
}
