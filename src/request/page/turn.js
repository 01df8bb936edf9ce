// turn.js: has one conversation answered: streams, answers the calls of example tools, goes on.

import {ApiError, streamChat} from './api.js';
import {apiMessages, applyChunk, newAnswer, openCalls} from './conversation.js';
import {answerOf, offeredTools} from './tools.js';

const kMaxRounds = 8;  // of calls that the page answers itself, in one turn

// The body of a request; fields that are not set are left to the server.
export function requestBody(messages, settings) {
  const body = {messages: apiMessages(messages, settings.system)};
  if (settings.model) body.model = settings.model;
  if (settings.temperature) body.temperature = Number(settings.temperature);
  if (settings.topP) body.top_p = Number(settings.topP);
  if (settings.maxTokens) body.max_tokens = Number(settings.maxTokens);
  if (settings.seed) body.seed = Number(settings.seed);
  if (settings.thinking) {
    body.thinking = {type: settings.thinking === 'off' ? 'disabled' : 'enabled'};
    if (settings.thinking !== 'off') body.reasoning_effort = settings.thinking;
  }
  const tools = offeredTools(settings);
  if (tools.length > 0) body.tools = tools;
  if (settings.schema) {
    const schema = JSON.parse(settings.schema);
    body.response_format = {
      type: 'json_schema',
      json_schema: {name: 'answer', schema, strict: true}
    };
  }
  return body;
}

// A piece may hold several tokens, but not this many: then it was held back, and says nothing of
// the model's speed.
const kMaxTokensPerPiece = 8;
// Pieces closer together than this came at once.
const kLeastSpanMs = 4;

// Streams one answer into `answer`, and measures it.
async function streamAnswer(answer, body, {key, signal, onProgress}) {
  const start = performance.now();
  let pieces = 0;
  let first = 0;  // when the first piece came, ms
  let last = 0;
  for await (const chunk of streamChat(body, {key, signal})) {
    const delta = chunk.choices?.[0]?.delta ?? {};
    if (delta.content || delta.reasoning_content || delta.tool_calls) {
      last = performance.now();
      if (pieces++ === 0) {
        first = last;
        answer.facts.ttftMs = first - start;
      }
      if (answer.reasoning && answer.facts.thinkingMs === undefined && !delta.reasoning_content) {
        answer.facts.thinkingMs = last - first;
      }
    }
    applyChunk(answer, chunk);
    onProgress(answer);
  }
  const {outputTokens = 0} = answer.facts;
  const measured = last - first >= kLeastSpanMs;
  if (measured && pieces > 1 && outputTokens <= pieces * kMaxTokensPerPiece) {
    answer.facts.tokensPerSecond = (outputTokens - 1) * 1000 / (last - first);
  }
}

// Appends answers to conversation.messages until the model has nothing more to say, or the user has
// to answer a call. Throws what streamChat() throws; what came until then stays.
export async function runTurn(conversation, settings, {key, signal, onAnswer, onProgress}) {
  for (let round = 0; round < kMaxRounds; ++round) {
    const answer = newAnswer();
    const body = requestBody(conversation.messages, settings);
    conversation.messages.push(answer);
    onAnswer(answer);
    await streamAnswer(answer, body, {key, signal, onProgress});
    for (const call of answer.calls) call.result = answerOf(call, settings);
    onProgress(answer);
    if (answer.calls.length === 0 || openCalls(answer).length > 0) return;
  }
  throw new ApiError('other', `The model called tools ${kMaxRounds} times in a row.`);
}
