// Cases of one client: each prints one line, `passed NAME: CASE` or `failed NAME: CASE: why`.

import assert from "node:assert/strict";

export const url = process.env.DI_SCRIPTED_URL; // `serve --scripted --api-key KEY`
export const key = process.env.DI_API_KEY;
export const model = "deepseek-flash";

const cases = [];
export function test(title, run) {
  cases.push({ title, run });
}

// Runs every case; the exit status says whether all passed.
export async function runAll(client) {
  let failures = 0;
  for (const { title, run } of cases) {
    try {
      await run();
      console.log(`passed ${client}: ${title}`);
    } catch (error) {
      failures += 1;
      console.log(`failed ${client}: ${title}: ${String(error).replace(/\s+/g, " ").slice(0, 400)}`);
      console.error(error);
    }
  }
  process.exit(failures ? 1 : 0);
}

// Plain JSON over HTTP, for what is not the client's own.
export async function post(path, body) {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, `${path}: HTTP ${answer.status}`);
  return answer.json();
}

export async function stats() {
  const answer = await fetch(`${url}/stats`, { headers: { Authorization: `Bearer ${key}` } });
  return answer.json();
}

export const callArguments = { city: 'Zürich "old" town', days: 3 };
export const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};

// Token ids of an answer that calls get_weather, as the model would say it.
export async function forcedCall(messages, tools = [weather]) {
  const call = {
    id: "call_forced",
    type: "function",
    function: { name: "get_weather", arguments: JSON.stringify(callArguments) },
  };
  const before = (await post("/render", { messages, tools })).tokens;
  const answer = { role: "assistant", content: "", tool_calls: [call] };
  const after = (
    await post("/render", { messages: [...messages, answer], tools, add_generation_prompt: false })
  ).tokens;
  assert.deepEqual(after.slice(0, before.length), before);
  return after.slice(before.length);
}

export async function waitUntil(condition, seconds = 5) {
  const end = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return true;
}
