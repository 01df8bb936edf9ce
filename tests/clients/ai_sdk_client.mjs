// npm ai with @ai-sdk/openai-compatible: a streamed round trip with a tool.

import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";
import { callArguments, forcedCall, key, model, runAll, test, url, weather } from "./harness.mjs";

test("streamed tool round trip", async () => {
  const messages = [{ role: "user", content: "What is the weather in Zürich?" }];
  const forced = await forcedCall(messages);
  // Only the first answer is forced; the one after the tool's result is the model's own.
  let numAsked = 0;
  const asking = async (address, options) => {
    const body = JSON.parse(options.body);
    if (numAsked++ === 0) body.forced_token_ids = forced;
    return fetch(address, { ...options, body: JSON.stringify(body) });
  };
  const provider = createOpenAICompatible({
    name: "deepinfer",
    baseURL: `${url}/v1`,
    apiKey: key,
    includeUsage: true,
    fetch: asking,
  });
  const asked = [];
  const result = streamText({
    model: provider(model),
    messages,
    maxOutputTokens: 200,
    stopWhen: stepCountIs(2),
    tools: {
      get_weather: tool({
        description: weather.function.description,
        inputSchema: jsonSchema(weather.function.parameters),
        execute: async (input) => {
          asked.push(input);
          return "Rain.";
        },
      }),
    },
    onError: ({ error }) => {
      throw error;
    },
  });
  const kinds = new Set();
  for await (const part of result.fullStream) {
    assert.notEqual(part.type, "error", String(part.error));
    kinds.add(part.type);
  }
  assert.deepEqual(asked, [callArguments]);
  const steps = await result.steps;
  assert.equal(steps.length, 2);
  assert.equal(steps[0].finishReason, "tool-calls");
  assert.ok(kinds.has("tool-call") && kinds.has("tool-result"), [...kinds].join());
  assert.ok(steps[1].usage.inputTokens > steps[0].usage.inputTokens);
});

await runAll("ai-sdk");
