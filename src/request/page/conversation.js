// conversation.js: a conversation as the page keeps it, and as the API wants it.
//
//   {id, title, updated, messages: [message]}
//   user message:      {role: "user", content}
//   assistant message: {role: "assistant", content, reasoning, calls: [{id, name, arguments,
//                       result}], finish, facts}   result: null until the call is answered
// A round of tool calls is one assistant message; the answer to the results is the next one.

export function newConversation() {
  return {id: newId(), title: '', updated: Date.now(), messages: []};
}

// randomUUID() needs https or localhost; ids need only differ.
function newId() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join('');
}

export const newAnswer = () =>
    ({role: 'assistant', content: '', reasoning: '', calls: [], finish: null, facts: {}});

// Nothing came: the answer was cut off before its first token.
export const isEmpty = ({role, content, reasoning, calls}) =>
    role === 'assistant' && content === '' && reasoning === '' && calls.length === 0;

export function titleOf(text) {
  const line = text.trim().split('\n', 1)[0];
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

// Puts a chunk of the stream into the answer.
export function applyChunk(answer, chunk) {
  if (chunk.usage) {
    answer.facts.promptTokens = chunk.usage.prompt_tokens;
    answer.facts.outputTokens = chunk.usage.completion_tokens;
    answer.facts.cachedTokens = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0;
  }
  if (chunk.seed !== undefined) answer.facts.seed = chunk.seed;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const {content, reasoning_content: reasoning, tool_calls: calls} = choice.delta ?? {};
  if (content) answer.content += content;
  if (reasoning) answer.reasoning += reasoning;
  for (const piece of calls ?? []) {
    const call = answer.calls[piece.index] ??= {id: '', name: '', arguments: '', result: null};
    if (piece.id) call.id = piece.id;
    call.name += piece.function?.name ?? '';
    call.arguments += piece.function?.arguments ?? '';
  }
  if (choice.finish_reason) answer.finish = choice.finish_reason;
}

export const openCalls = (message) => (message?.calls ?? []).filter((call) => call.result === null);

// Asked for tool results that nobody gave: what the model is told when the user just goes on.
const kNoResult = 'The user gave no result.';

const callOf = ({id, name, arguments: text}) =>
    ({id, type: 'function', function: {name, arguments: text}});
const resultOf = ({id, result}) => ({role: 'tool', tool_call_id: id, content: result ?? kNoResult});

function toApi(message) {
  if (message.role === 'user') return [{role: 'user', content: message.content}];
  const {content, reasoning, calls} = message;
  const spoken = {role: 'assistant', content: content || (calls.length > 0 ? null : '')};
  if (reasoning) spoken.reasoning_content = reasoning;
  if (calls.length === 0) return [spoken];
  return [{...spoken, tool_calls: calls.map(callOf)}, ...calls.map(resultOf)];
}

export function apiMessages(messages, system) {
  const spoken = messages.filter((message) => !isEmpty(message));
  const head = system?.trim() ? [{role: 'system', content: system}] : [];
  return [...head, ...spoken.flatMap(toApi)];
}
