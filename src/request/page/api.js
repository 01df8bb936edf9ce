// api.js: talks to the server. Every failure is an ApiError whose message says what to do.

import {readEvents} from './sse.js';

// kind: "away" no answer; "key" a key is missing or wrong; "busy" try again after retryAfter
// seconds; "long" the conversation does not fit; "other".
export class ApiError extends Error {
  constructor(kind, message, {status = 0, retryAfter = 0} = {}) {
    super(message);
    Object.assign(this, {kind, status, retryAfter});
  }
}

const away = () =>
    new ApiError('away', 'The server does not answer. See that it runs, then try again.');

function refusal(status, error, retryAfter) {
  const said = error?.message ?? `The server answered ${status}.`;
  const is = (kind, message) => new ApiError(kind, message, {status, retryAfter});
  const code = error?.code;  // the only sign in the middle of a stream
  if (status === 401 || code === 'invalid_api_key')
    return is('key', 'The server asks for an API key.');
  if (status === 429 || code === 'rate_limit_exceeded')
    return is('busy', 'Too many requests at once.');
  if (status === 503 || code === 'overloaded') return is('busy', `The server is busy: ${said}.`);
  if (code === 'context_length_exceeded') {
    return is(
        'long',
        `This conversation is too long for the model: begin a new chat or shorten it. (${said})`);
  }
  return is('other', said);
}

async function failureOf(response) {
  const body = await response.json().catch(() => null);
  const retryAfter = Number(response.headers.get('retry-after')) || 1;
  return refusal(response.status, body?.error, retryAfter);
}

async function send(path, {key, ...init}) {
  const headers = {...init.headers};
  if (key) headers.authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, {...init, headers, cache: 'no-store', credentials: 'omit'});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw away();
  }
  if (!response.ok) throw await failureOf(response);
  return response;
}

export async function getJson(path, {key, signal = AbortSignal.timeout(5000)} = {}) {
  try {
    return await (await send(path, {key, signal})).json();
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw away();  // too slow, or not JSON: not our server
  }
}

// Yields the chunks of a streamed chat completion. `signal` stops it, which closes the connection;
// the server then cancels the request. Throws ApiError, or AbortError after a stop.
export async function* streamChat(body, {key, signal}) {
  const response = await send('/v1/chat/completions', {
    key,
    signal,
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({...body, stream: true, stream_options: {include_usage: true}}),
  });
  try {
    for await (const data of readEvents(response.body)) {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw refusal(200, chunk.error, 1);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof ApiError || error.name === 'AbortError') throw error;
    throw new ApiError('away', 'The connection broke. See that the server runs, then try again.');
  }
  throw new ApiError('away', 'The answer broke off. See that the server runs, then try again.');
}
