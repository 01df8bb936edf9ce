// dashboard.js: how the server does: a card for each question, filled from stats.js.

import {byId, el} from './dom.js';
import {Plot} from './plot.js';

const count = (value) => {
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(value >= 1e5 ? 0 : 1)}k`;
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
};
const milliseconds = (ms) => {
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms >= 10_000 ? 0 : 1)} s`;
  return `${ms >= 20 || Number.isInteger(ms) ? ms.toFixed(0) : ms.toFixed(1)} ms`;
};
const percent = (ratio) => `${(ratio * 100).toFixed(0)}%`;
const duration = (seconds) => {
  const [days, hours, minutes] =
      [seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60].map(Math.floor);
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${Math.floor(seconds % 60)} s`;
};

const percentiles = (name, title) => ({
  title,
  series: ['p50', 'p90', 'p99'],
  format: milliseconds,
  least: 10,
  values: ({stats}) => ['p50', 'p90', 'p99'].map((p) => stats[name]?.[p] ?? null),
  headline: ({stats}) => [stats[name]?.p50, milliseconds, 'median'],
});

// values(row): one a series. headline(row): [value or null, its format, unit].
const kCards = [
  {
    title: 'Requests in the engine',
    series: ['running', 'waiting'],
    format: count,
    least: 4,
    values: ({stats}) => [stats.running, stats.waiting],
    headline: ({stats}) =>
        [stats.running, count, `of ${stats.max_num_seqs} running, ${stats.waiting} waiting`],
  },
  {
    title: 'Tokens per second',
    series: ['output', 'prompt', 'of it cached'],
    format: count,
    least: 10,
    values: (row) => [row.outputRate, row.promptRate, row.cachedRate],
    headline: (row) => [row.outputRate, count, 'output tokens/s'],
  },
  {
    title: 'Prompt tokens found in the cache',
    series: ['hit rate'],
    format: percent,
    top: () => 1,
    values: (row) => [row.hitRatio],
    headline: (row) => [row.hitRatio, percent, 'in the last minute'],
  },
  percentiles('ttft_ms', 'Time to first token'),
  percentiles('tpot_ms', 'Time per output token'),
  percentiles('e2e_ms', 'Time of a whole request'),
  {
    title: 'Pages of the KV cache',
    series: ['in use', 'cached'],
    format: count,
    stacked: true,
    top: ({stats}) => stats.pages.total || undefined,
    values: ({stats}) => [stats.pages.used, stats.pages.cached],
    headline: ({stats}) => [stats.pages.used, count, `of ${count(stats.pages.total)} in use`],
  },
  {
    title: 'Requests that ended, per second',
    series: ['answered', 'failed', 'cancelled', 'rejected'],
    format: count,
    values: (row) => row.outcomes,
    headline: ({stats}) => [stats.requests.ok, count, 'answered since the start'],
  },
];

class Card {
  #config;
  #plot;
  #value = el('span', {class: 'value'}, '–');
  #unit = el('span', {class: 'unit'});

  constructor(config) {
    this.#config = config;
    this.#plot = new Plot(config);
    this.element =
        el('section', {class: 'card', 'aria-label': config.title}, el('h2', {}, config.title),
           el('p', {class: 'headline'}, this.#value, this.#unit), this.#plot.element,
           this.#plot.legend);
  }

  update(rows) {
    const {values, headline, top} = this.#config;
    const [value, format, unit] = headline(rows.at(-1));
    this.#value.textContent = value === null || value === undefined ? '–' : format(value);
    this.#unit.textContent = unit;
    this.#plot.update(rows.map((row) => ({at: row.at, values: values(row)})), top?.(rows.at(-1)));
  }
}

// Numbers that need no plot.
function engineFacts({stats, stepRate, stepShare}) {
  const {requests, drafts} = stats;
  const facts = [
    ['Model', stats.model],
    ['Version', stats.version],
    ['State', stats.state],
    ['Up for', duration(stats.uptime_seconds)],
    ['Steps per second', stepRate === null ? '–' : count(stepRate)],
    ['Time per step', stepRate > 0 ? milliseconds(stepShare / stepRate * 1000) : '–'],
    ['Busy', stepShare === null ? '–' : percent(Math.min(1, stepShare))],
    [
      'Failed, cancelled, rejected',
      [requests.failed, requests.cancelled, requests.rejected].map(count).join(', ')
    ],
    ['Preempted now', count(stats.preempted)],
    ['Late grammar masks', count(stats.late_masks)],
  ];
  if (drafts?.verified > 0)
    facts.push(['Drafts accepted', percent(drafts.accepted / drafts.verified)]);
  return facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]);
}

export class Dashboard {
  #cards = kCards.map((config) => new Card(config));
  #facts = el('dl', {class: 'facts-list'});
  #lastAnswer = null;  // ms

  constructor() {
    byId('cards').append(
        ...this.#cards.map((card) => card.element),
        el('section', {class: 'card', 'aria-label': 'Engine'}, el('h2', {}, 'Engine'),
           this.#facts));
  }

  // rows: stats.js. error: why there is no new one.
  update(rows, error) {
    this.#showError(error);
    if (rows.length === 0 || error) return;
    this.#lastAnswer = rows.at(-1).at;
    for (const card of this.#cards) card.update(rows);
    this.#facts.replaceChildren(...engineFacts(rows.at(-1)));
  }

  #showError(error) {
    byId('away').hidden = !error;
    if (!error) return;
    const since = this.#lastAnswer === null ?
        '' :
        ` Last heard at ${new Date(this.#lastAnswer).toLocaleTimeString()}.`;
    byId('away').textContent = error.kind === 'away' ?
        `The server does not answer; asking again every second.${since}` :
        error.kind === 'key' ? 'The server asks for an API key: enter it in the settings.' :
                               error.message;
  }
}
