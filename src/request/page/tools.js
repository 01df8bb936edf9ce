// tools.js: the functions that a model may call: the user's, answered by the user, and two examples
// that the page answers itself.

import {calculate} from './calculator.js';

const kExamples = [
  {
    name: 'calculator',
    description: 'Works out an arithmetic expression and returns its value.',
    parameters: {
      type: 'object',
      properties: {expression: {type: 'string', description: 'for example 12 * (3 + 4)'}},
      required: ['expression'],
    },
    run: ({expression}) => {
      const value = calculate(String(expression));
      // 0.1 + 0.2 is 0.3 to whoever asks.
      return {value: Number.isFinite(value) ? Number(value.toPrecision(15)) : String(value)};
    },
  },
  {
    name: 'clock',
    description: 'Returns the present date and time of day where the user is.',
    parameters: {type: 'object', properties: {}},
    run: () => {
      const now = new Date();
      return {
        date: now.toLocaleDateString('sv'),  // 2026-11-30
        time: now.toLocaleTimeString('sv'),  // 12:34:56
        zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      };
    },
  },
];

// The user's list, as the API wants it. Accepts bare functions and {"type":"function","function"}.
// Throws an Error that says what is wrong.
export function parseTools(text) {
  if (text.trim() === '') return [];
  let list;
  try {
    list = JSON.parse(text);
  } catch (error) {
    throw new Error(`not JSON: ${error.message}`);
  }
  if (!Array.isArray(list)) throw new Error('expected a list: [{"name": ...}, ...]');
  return list.map((entry, idx) => {
    const tool = entry?.function ?? entry;
    if (typeof tool?.name !== 'string' || tool.name === '') {
      throw new Error(`function ${idx + 1} of the list has no "name"`);
    }
    return {type: 'function', function: tool};
  });
}

// What goes into a request's "tools".
export function offeredTools({tools, exampleTools}) {
  const offered = parseTools(tools ?? '');
  if (!exampleTools) return offered;
  const taken = new Set(offered.map((tool) => tool.function.name));
  const examples = kExamples.filter(({name}) => !taken.has(name));
  return offered.concat(
      examples.map(({run, ...described}) => ({type: 'function', function: described})));
}

// The result of a call of one of the examples, as text; null where the user has to answer.
export function answerOf(call, {tools, exampleTools}) {
  const example = kExamples.find(({name}) => name === call.name);
  const own = parseTools(tools ?? '').some((tool) => tool.function.name === call.name);
  if (!exampleTools || !example || own) return null;
  try {
    return JSON.stringify(example.run(JSON.parse(call.arguments || '{}')));
  } catch (error) {
    return JSON.stringify({error: error.message});
  }
}
