// stats.js: GET /stats again and again, and what it says as a row of the history.
//
// Counters become rates over the time between two answers, by the server's clock. Nothing is asked
// while the page is hidden.

import {getJson} from './api.js';

const kHistoryMs = 300_000;
const kRateWindowMs = 5000;     // of all rates: a second alone would jump with each request's end
const kRatioWindowMs = 60_000;  // of the hit rate
const kSlowMs = 5000;           // how often to ask while nobody looks at the dashboard

// Per second; null without an earlier answer, or if the server was started anew in between.
function rate(now, before, get) {
  if (!before || now.uptime_seconds < before.uptime_seconds) return null;
  const elapsed = now.uptime_seconds - before.uptime_seconds;
  return elapsed > 0 ? Math.max(0, get(now) - get(before)) / elapsed : null;
}

export class StatsPoller {
  #timer = 0;
  #rows = [];  // {at: ms, stats}; at most kHistoryMs long
  #often = false;
  #asking = false;

  // keyOf(): the API key. onRow(rows, error): after each answer, and each failure to get one.
  constructor(keyOf, onRow) {
    this.keyOf = keyOf;
    this.onRow = onRow;
    document.addEventListener('visibilitychange', () => this.#schedule(0));
    this.#schedule(0);
  }

  // Once a second instead of once in five.
  set often(often) {
    this.#often = often;
    this.#schedule(0);
  }

  #schedule(afterMs) {
    clearTimeout(this.#timer);
    if (!document.hidden) this.#timer = setTimeout(() => this.#ask(), afterMs);
  }

  async #ask() {
    if (this.#asking) return;
    this.#asking = true;
    const start = Date.now();
    let error = null;
    try {
      this.#add(await getJson('/stats', {key: this.keyOf()}));
    } catch (failure) {
      error = failure;
    }
    this.#asking = false;
    this.onRow(this.#rows, error);
    const period = this.#often ? 1000 : kSlowMs;
    this.#schedule(Math.max(0, period - (Date.now() - start)));
  }

  // The oldest answer of the same run of the server that is not older than `ms`.
  #since(ms, {uptime_seconds: uptime}) {
    return this.#rows.find(({at, stats}) => at >= Date.now() - ms && stats.uptime_seconds < uptime)
        ?.stats;
  }

  #add(stats) {
    const at = Date.now();
    const minute = this.#since(kRatioWindowMs, stats);
    const prompt = rate(stats, minute, (s) => s.prompt_tokens);
    const cached = rate(stats, minute, (s) => s.cached_tokens);
    const before = this.#since(kRateWindowMs, stats) ?? this.#rows.at(-1)?.stats;
    const perSecond = (get) => rate(stats, before, get);
    this.#rows.push({
      at,
      stats,
      promptRate: perSecond((s) => s.prompt_tokens),
      cachedRate: perSecond((s) => s.cached_tokens),
      outputRate: perSecond((s) => s.output_tokens),
      stepRate: perSecond((s) => s.steps),
      stepShare: perSecond((s) => s.step_seconds),  // of the time, 0..1
      hitRatio: prompt > 0 ? Math.min(1, cached / prompt) : null,
      outcomes: ['ok', 'failed', 'cancelled', 'rejected'].map(
          (name) => perSecond((s) => s.requests[name])),
    });
    while (this.#rows[0].at < at - kHistoryMs) this.#rows.shift();
  }
}
