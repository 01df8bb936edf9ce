// plot.js: a plot of a few lines over the last minutes, as SVG, with a legend of present values.

import {el, svg} from './dom.js';
const kSpansMin = [1, 2, 5];  // of the time axis: the shortest that holds all there is
const kGapMs = 12_000;        // longer without a value: the line is broken
const kMargin = {
  left: 44,
  right: 4,
  top: 8,
  bottom: 18
};  // px

// The least of 1, 2, 4, 6, 8, 10, 20, ... that is not below `value`: halves of these are short,
// too.
export function niceCeil(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].find((factor) => factor * power >= value * 0.9999) * power;
}

// Points as an SVG path; null values and long gaps break it. points: [{x, y or null, at}]
function pathOf(points) {
  let path = '';
  let before = null;
  for (const point of points) {
    if (point.y !== null) {
      const joined = before !== null && point.at - before <= kGapMs;
      path += `${joined ? 'L' : 'M'}${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
      before = point.at;
    } else {
      before = null;
    }
  }
  return path;
}

export class Plot {
  #series;
  #format;
  #least;
  #stacked;
  #host = el('div', {class: 'plot'});
  #when = el('span', {class: 'when'});
  #values;
  #rows = [];       // [{at, values: [number or null]}]
  #pointer = null;  // x of the mouse, px

  // series: names, at most four. format(value): as text. least: the scale reaches at least this
  // far. stacked: lines are heaped on each other, and filled.
  constructor({series, format, least = 1, stacked = false}) {
    this.#series = series;
    this.#format = format;
    this.#least = least;
    this.#stacked = stacked;
    this.#values = series.map(() => el('b'));
    this.legend =
        el('div', {class: 'legend'},
           ...series.map(
               (name, idx) => el(
                   'span', {}, el('i', {class: `key series-${idx + 1}`}), name, this.#values[idx])),
           this.#when);
    this.element = this.#host;
    this.#host.addEventListener('pointermove', (event) => this.#point(event.offsetX));
    this.#host.addEventListener('pointerleave', () => this.#point(null));
    new ResizeObserver(() => this.#draw()).observe(this.#host);
  }

  // top: a fixed end of the scale; else the scale follows the values.
  update(rows, top) {
    this.#rows = rows;
    this.top = top;
    this.#draw();
  }

  #point(x) {
    this.#pointer = x;
    this.#draw();
  }

  #heights(row) {
    if (!this.#stacked) return row.values;
    let sum = 0;
    return row.values.map((value) => (value === null ? null : (sum += value)));
  }

  #draw() {
    const {clientWidth: width, clientHeight: height} = this.#host;
    if (width === 0) return;
    const now = this.#rows.at(-1)?.at ?? Date.now();
    const minutes = this.#minutes();
    const heights = this.#rows.map((row) => this.#heights(row));
    const top = this.top ?? niceCeil(Math.max(this.#least, ...heights.flat().map((h) => h ?? 0)));
    const scale = {
      x: (at) => width - kMargin.right -
          (now - at) / (minutes * 60_000) * (width - kMargin.left - kMargin.right),
      y: (value) => height - kMargin.bottom - value / top * (height - kMargin.top - kMargin.bottom),
    };
    this.#host.replaceChildren(
        svg('svg', {'aria-hidden': 'true'}, ...this.#axes(scale, top, width),
            ...this.#times(scale, minutes, now), ...this.#traces(scale, heights),
            ...this.#cursor(scale)));
    this.#showValues();
  }

  #minutes() {
    const first = this.#rows[0]?.at ?? 0;
    const length = (this.#rows.at(-1)?.at ?? 0) - first;
    return kSpansMin.find((minutes) => length <= minutes * 60_000) ?? kSpansMin.at(-1);
  }

  #axes(scale, top, width) {
    return [0, top / 2, top].flatMap(
        (value) =>
            [svg('line', {
               class: 'grid',
               x1: kMargin.left,
               x2: width - kMargin.right,
               y1: scale.y(value),
               y2: scale.y(value)
             }),
             svg('text',
                 {class: 'tick', x: kMargin.left - 8, y: scale.y(value) + 4, 'text-anchor': 'end'},
                 value === 0 ? '0' : this.#format(value)),
    ]);
  }

  // "5 min ... now", or "60 s ... now".
  #times(scale, minutes, now) {
    const parts = minutes === 5 ? 5 : 4;
    return Array.from({length: parts + 1}, (_, part) => {
      const ago = minutes * 60 * part / parts;
      const text = minutes === 5 ? `${ago / 60} min` : `${ago} s`;
      const anchor = part === 0 ? 'end' : part === parts ? 'start' : 'middle';
      return svg(
          'text',
          {class: 'tick', x: scale.x(now - ago * 1000), y: scale.y(0) + 15, 'text-anchor': anchor},
          part === 0 ? 'now' : text);
    });
  }

  #traces(scale, heights) {
    return this.#series
        .flatMap((name, idx) => {
          const points = this.#rows.map(({at}, row) => {
            const value = heights[row][idx];
            return {at, x: scale.x(at), y: value === null ? null : scale.y(value)};
          });
          const kind = `series-${idx + 1}`;
          const line = svg('path', {class: `trace ${kind}`, d: pathOf(points)});
          return this.#stacked || this.#series.length === 1 ?
              [
                svg('path', {class: `area ${kind}`, d: this.#areaOf(points, scale, heights, idx)}),
                line
              ] :
              [line];
        })
        .reverse();  // the first series lies on top
  }

  // Each stretch without a gap, closed along the series below, or the zero line.
  #areaOf(points, scale, heights, idx) {
    const below = (row) =>
        (this.#stacked && idx > 0 ? scale.y(heights[row][idx - 1] ?? 0) : scale.y(0));
    let path = '';
    points.forEach((point, row) => {
      const next = points[row + 1];
      if (!next || point.y === null || next.y === null || next.at - point.at > kGapMs) return;
      path += `M${point.x} ${point.y}L${next.x} ${next.y}L${next.x} ${below(row + 1)}L${point.x} ${
          below(row)}Z`;
    });
    return path;
  }

  // The row that the mouse is at; the last one without a mouse.
  #rowInFocus() {
    const last = this.#rows.at(-1);
    if (this.#pointer === null || !last) return last;
    const span = this.#host.clientWidth - kMargin.left - kMargin.right;
    const ago =
        (this.#host.clientWidth - kMargin.right - this.#pointer) / span * this.#minutes() * 60_000;
    const at = last.at - ago;
    return this.#rows.reduce(
        (best, row) => (Math.abs(row.at - at) < Math.abs(best.at - at) ? row : best));
  }

  #cursor(scale) {
    if (this.#pointer === null || this.#rows.length === 0) return [];
    const x = scale.x(this.#rowInFocus().at);
    return [svg('line', {class: 'cursor', x1: x, x2: x, y1: kMargin.top, y2: scale.y(0)})];
  }

  #showValues() {
    const row = this.#rowInFocus();
    this.#values.forEach((value, idx) => {
      const number = row?.values[idx] ?? null;
      value.textContent = number === null ? '–' : this.#format(number);
    });
    this.#when.textContent =
        this.#pointer === null || !row ? '' : new Date(row.at).toLocaleTimeString();
  }
}
