// Draws curves as one SVG: a panel each, both axes logarithmic, readable on light and dark pages.

const COLUMNS = 2;
const PANEL = { width: 440, height: 300, left: 66, right: 30, top: 62, bottom: 46 };
const COLORS = ['a', 'b', 'c'];
/** The class of R. */
const GREY = 'd';

const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #57606a }
  .title { font-size: 14px; font-weight: 600; fill: #1f2328 }
  .grid { stroke: #8c959f; stroke-opacity: .3 } .axis { stroke: #8c959f }
  polyline { fill: none; stroke-width: 2 }
  .a { stroke: #0969da; fill: #0969da } .b { stroke: #bc4c00; fill: #bc4c00 }
  .c { stroke: #1a7f37; fill: #1a7f37 } .d { stroke: #6e7781; fill: #6e7781 }
  polyline.a, polyline.b, polyline.c, polyline.d { fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 } .title { fill: #f0f6fc }
    .a { stroke: #4493f8; fill: #4493f8 } .b { stroke: #f0883e; fill: #f0883e }
    .c { stroke: #3fb950; fill: #3fb950 } .d { stroke: #9198a1; fill: #9198a1 }
  }`;

/** @param curves `{ title, xLabel, bytes?, series: { name: [[x, microseconds], …] } }` */
export function chart(curves) {
  const rows = Math.ceil(curves.length / COLUMNS);
  const width = COLUMNS * PANEL.width;
  const height = rows * PANEL.height;
  const panels = curves.map((curve, index) => {
    const x = (index % COLUMNS) * PANEL.width;
    const y = Math.floor(index / COLUMNS) * PANEL.height;
    return `<g transform="translate(${x} ${y})">${panel(curve)}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>CPU of a turn against what grows</title>
<style>${STYLE}</style>
${panels.join('\n')}
</svg>
`;
}

function panel({ title, xLabel, bytes = false, series }) {
  const right = PANEL.width - PANEL.right;
  const bottom = PANEL.height - PANEL.bottom;
  const all = Object.values(series).flat();
  const values = all.map(([value]) => value);
  const costs = all.map(([, cost]) => Math.log10(cost));
  const x = axis(Math.min(...values), Math.max(...values), PANEL.left, right);
  const y = axis(10 ** Math.floor(Math.min(...costs)), 10 ** Math.ceil(Math.max(...costs)), bottom, PANEL.top);
  const parts = [text(12, 20, title, 'title', 'start')];
  for (const value of x.ticks) {
    parts.push(line(x.at(value), PANEL.top, x.at(value), bottom, 'grid'));
    parts.push(text(x.at(value), bottom + 16, bytes ? sizeOf(value) : value.toLocaleString('en'), '', 'middle'));
  }
  for (const value of y.ticks) {
    parts.push(line(PANEL.left, y.at(value), right, y.at(value), 'grid'));
    parts.push(text(PANEL.left - 6, y.at(value) + 4, timeOf(value), '', 'end'));
  }
  parts.push(line(PANEL.left, bottom, right, bottom, 'axis'), line(PANEL.left, PANEL.top, PANEL.left, bottom, 'axis'));
  parts.push(text((PANEL.left + right) / 2, bottom + 34, xLabel, '', 'middle'));
  let legend = 12;
  Object.entries(series).forEach(([name, points], index) => {
    const color = name.startsWith('R') ? GREY : COLORS[index % COLORS.length];
    const where = points.map(([a, b]) => `${round(x.at(a))},${round(y.at(b))}`);
    parts.push(`<polyline class="${color}" points="${where.join(' ')}"/>`);
    for (const point of where) {
      const [cx, cy] = point.split(',');
      parts.push(`<circle class="${color}" cx="${cx}" cy="${cy}" r="3"/>`);
    }
    parts.push(`<rect class="${color}" x="${legend}" y="33" width="12" height="4"/>`, text(legend + 17, 40, name, '', 'start'));
    legend += 36 + 6.5 * name.length;
  });
  return parts.join('\n');
}

/** A logarithmic axis. Its ticks are at powers of ten, on a short one also at 2 and 5 of them. */
function axis(low, high, from, to) {
  const steps = [];
  for (let power = 0; power <= 9; power++) for (const digit of [1, 2, 5]) steps.push(digit * 10 ** power);
  const inside = steps.filter((step) => step >= low * 0.999 && step <= high * 1.001);
  const decades = inside.filter((step) => Number.isInteger(Math.log10(step)));
  const ticks = decades.length < 3 ? inside : [...new Set([...decades, high])];
  const share = (value) => Math.log(value / low) / Math.log(high / low);
  return { ticks, at: (value) => from + share(value) * (to - from) };
}

function text(x, y, content, name, anchor) {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"${name && ` class="${name}"`}>${content}</text>`;
}

function line(x1, y1, x2, y2, name) {
  return `<line class="${name}" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"/>`;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function timeOf(microseconds) {
  return microseconds < 1000 ? `${microseconds} µs` : `${microseconds / 1000} ms`;
}

function sizeOf(bytes) {
  return bytes < 1e6 ? `${bytes / 1e3} KB` : `${bytes / 1e6} MB`;
}
