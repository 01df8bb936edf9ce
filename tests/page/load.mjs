// Load on a server, for what only shows under load.
import {sleep} from './suite.mjs';

// Prompts begin alike, so that the prefix cache has something to find.
const kStory = 'The boat sails over the water, and the sea is calm today. '.repeat(20);

// One client after the other: asks, reads, waits a moment, asks again; answers of 20 tokens and
// more, up to `tokens`. Goes on until the returned function is called.
export function load(server, clients, tokens) {
  const stop = new AbortController();
  const ask = (content, max_tokens) => fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    signal: stop.signal,
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({messages: [{role: 'user', content}], max_tokens, ignore_eos: true}),
  });
  const client = async (number) => {
    for (let round = 0; !stop.signal.aborted; ++round) {
      const length = 20 + (number * 37 + round * 61) % Math.max(1, tokens - 19);
      await ask(`${kStory}What does number ${number} say in round ${round}?`, length)
          .then((answer) => answer.text())
          .catch(() => {});
      await sleep((number * 130 + round * 70) % 400);
    }
  };
  const all = Promise.all(Array.from({length: clients}, (_, number) => client(number)));
  return () => {
    stop.abort();
    return all;
  };
}
