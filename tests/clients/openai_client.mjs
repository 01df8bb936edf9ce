// npm openai against the real server. What the server says is recorded in the file that
// DI_RECORDED names: shapes.py validates it afterwards.

import assert from "node:assert/strict";
import fs from "node:fs";
import OpenAI from "openai";
import {
  callArguments,
  forcedCall,
  key,
  model,
  runAll,
  stats,
  test,
  url,
  waitUntil,
  weather,
} from "./harness.mjs";

const hello = [{ role: "user", content: "What is a dog?" }];
const city = [{ role: "user", content: "What is the weather in Zürich?" }];

function record(kind, body) {
  fs.appendFileSync(process.env.DI_RECORDED, JSON.stringify({ kind, body }) + "\n");
}

// Notes every answer of the API as it came, whole or by events.
async function recordingFetch(address, options) {
  const answer = await fetch(address, options);
  if (!answer.ok || options.signal?.aborted) return answer;
  const path = new URL(address).pathname;
  if (path.includes("/models")) {
    const body = await answer.clone().json();
    for (const entry of body.data ?? [body]) record("model", entry);
    return answer;
  }
  const chat = path.endsWith("/chat/completions");
  const streams = answer.headers.get("content-type").startsWith("text/event-stream");
  if (!streams) {
    record(chat ? "chat" : "completion", await answer.clone().json());
    return answer;
  }
  const [mine, theirs] = answer.body.tee();
  new Response(mine)
    .text()
    .then((text) => {
      for (const line of text.split("\n")) {
        if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
        record(chat ? "chunk" : "completion", JSON.parse(line.slice(6)));
      }
    })
    .catch(() => {}); // the client has left
  return new Response(theirs, { status: answer.status, headers: answer.headers });
}

const client = new OpenAI({
  baseURL: `${url}/v1`,
  apiKey: key,
  maxRetries: 0,
  timeout: 60_000,
  fetch: recordingFetch,
});
// Recording would keep an answer going that its client has left.
const unrecorded = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

const chat = (messages, fields = {}) =>
  client.chat.completions.create({ model, messages, max_tokens: 32, ...fields });

async function stream(messages, fields = {}) {
  const chunks = [];
  const options = { stream: true, stream_options: { include_usage: true } };
  for await (const chunk of await chat(messages, { ...options, ...fields })) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks) =>
  chunks.flatMap((c) => c.choices.map((choice) => choice.delta.content ?? "")).join("");

test("lists models", async () => {
  const names = [];
  for await (const entry of client.models.list()) names.push(entry.id);
  assert.ok(names.includes(model), String(names));
  assert.equal((await client.models.retrieve(model)).id, model);
});

test("answers a chat", async () => {
  const answer = await chat(hello);
  assert.equal(answer.object, "chat.completion");
  assert.ok(answer.choices[0].message.content.length > 0);
  const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
  assert.equal(total_tokens, prompt_tokens + completion_tokens);
});

test("streams what it answers whole", async () => {
  for (const seed of [1, 2, 3, 4]) {
    const whole = await chat(hello, { seed, temperature: 1 });
    const chunks = await stream(hello, { seed, temperature: 1 });
    assert.equal(textOf(chunks), whole.choices[0].message.content);
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
    assert.equal(chunks.at(-1).usage.completion_tokens, whole.usage.completion_tokens);
  }
});

test("calls a tool, streamed, and takes its result", async () => {
  const forced_token_ids = await forcedCall(city);
  const runner = client.chat.completions.stream({
    model,
    messages: city,
    tools: [weather],
    max_tokens: 200,
    forced_token_ids,
  });
  const final = await runner.finalChatCompletion();
  const [choice] = final.choices;
  assert.equal(choice.finish_reason, "tool_calls");
  const [call] = choice.message.tool_calls;
  assert.equal(call.function.name, "get_weather");
  assert.deepEqual(JSON.parse(call.function.arguments), callArguments);
  const result = { role: "tool", tool_call_id: call.id, content: "Rain." };
  const next = await chat([...city, choice.message, result], { tools: [weather] });
  assert.equal(next.choices[0].message.role, "assistant");
});

test("calls a tool when it must", async () => {
  const answer = await chat(city, {
    tools: [weather],
    tool_choice: "required",
    parallel_tool_calls: false,
    temperature: 0,
    max_tokens: 400,
  });
  assert.equal(answer.choices[0].finish_reason, "tool_calls");
  assert.equal(answer.choices[0].message.content, null);
  assert.equal(answer.choices[0].message.tool_calls.length, 1);
  const { city: place } = JSON.parse(answer.choices[0].message.tool_calls[0].function.arguments);
  assert.equal(typeof place, "string");
});

test("answers with a schema", async () => {
  const schema = {
    type: "object",
    properties: { n: { type: "integer", minimum: 3, maximum: 7 }, ok: { type: "boolean" } },
    required: ["n", "ok"],
    additionalProperties: false,
  };
  const answer = await client.chat.completions.parse({
    model,
    messages: [{ role: "user", content: "A number." }],
    response_format: { type: "json_schema", json_schema: { name: "n", strict: true, schema } },
    max_tokens: 64,
  });
  const { n, ok } = answer.choices[0].message.parsed;
  assert.ok(n >= 3 && n <= 7 && typeof ok === "boolean");
});

test("gives choices, log-probabilities and usage", async () => {
  const fields = { n: 2, seed: 5, logprobs: true, top_logprobs: 2, max_tokens: 6 };
  const answer = await chat(hello, fields);
  assert.deepEqual(answer.choices.map((c) => c.index), [0, 1]);
  for (const entry of answer.choices[0].logprobs.content) {
    assert.equal(entry.top_logprobs.length, 2);
  }
  const chunks = await stream(hello, fields);
  const first = chunks.flatMap((c) => c.choices.filter((choice) => choice.index === 0));
  const text = first.map((choice) => choice.delta.content ?? "").join("");
  assert.equal(text, answer.choices[0].message.content);
  assert.equal(chunks.at(-1).usage.completion_tokens, answer.usage.completion_tokens);
});

test("completes text", async () => {
  const fields = { model, prompt: "A dog is", max_tokens: 8, temperature: 0 };
  const answer = await client.completions.create({ ...fields, logprobs: 1 });
  assert.equal(answer.object, "text_completion");
  assert.ok(answer.choices[0].logprobs.tokens.length > 0);
  let streamed = "";
  for await (const chunk of await client.completions.create({ ...fields, stream: true })) {
    streamed += chunk.choices[0]?.text ?? "";
  }
  assert.equal(streamed, answer.choices[0].text);
});

test("names what is wrong", async () => {
  const wrong = [
    [OpenAI.BadRequestError, () => chat(hello, { temperature: 9 }), { param: "temperature" }],
    [OpenAI.NotFoundError, () => chat(hello, { model: "gpt-9" }), { code: "model_not_found" }],
    [
      OpenAI.BadRequestError,
      () => chat([{ role: "user", content: "dog ".repeat(20000) }]),
      { code: "context_length_exceeded" },
    ],
  ];
  for (const [kind, ask, fields] of wrong) {
    await assert.rejects(ask, (error) => {
      assert.ok(error instanceof kind, String(error));
      assert.equal(error.type, "invalid_request_error");
      for (const [name, value] of Object.entries(fields)) assert.equal(error[name], value);
      return true;
    });
  }
  const locked = new OpenAI({ baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(() => locked.models.list(), OpenAI.AuthenticationError);
});

test("frees the place of a client that leaves", async () => {
  const running = async () => {
    const { running, waiting } = await stats();
    return running + waiting;
  };
  assert.ok(await waitUntil(async () => (await running()) === 0));
  const answer = await unrecorded.chat.completions.create({
    model,
    messages: hello,
    stream: true,
    max_tokens: 6000,
    ignore_eos: true,
  });
  for await (const _ of answer) break; // leaves the loop, and so the answer
  assert.ok(await waitUntil(async () => (await running()) === 0, 2), "runs on");

  const leaver = new AbortController();
  const asked = unrecorded.chat.completions.create(
    { model, messages: hello, max_tokens: 6000, ignore_eos: true },
    { signal: leaver.signal },
  );
  assert.ok(await waitUntil(async () => (await running()) === 1), "does not show in /stats");
  leaver.abort();
  await assert.rejects(asked, OpenAI.APIUserAbortError);
  assert.ok(await waitUntil(async () => (await running()) === 0, 2), "runs on");
});

await runAll("openai-node");
