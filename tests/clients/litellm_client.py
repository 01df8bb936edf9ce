"""PyPI litellm: a streamed round trip with a tool."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a list of prices

import litellm
from harness import CALL_ARGUMENTS, KEY, MODEL, URL, WEATHER, case, expect, forced_call, run

litellm.telemetry = False
litellm.suppress_debug_info = True


def ask(messages, **fields):
    return litellm.completion(
        model=f"openai/{MODEL}",
        api_base=URL + "/v1",
        api_key=KEY,
        messages=messages,
        tools=[WEATHER],
        max_tokens=200,
        num_retries=0,
        timeout=60,
        **fields,
    )


@case
def streamed_tool_round_trip():
    messages = [{"role": "user", "content": "What is the weather in Zürich?"}]
    chunks = list(
        ask(messages, stream=True, extra_body={"forced_token_ids": forced_call(messages)})
    )
    whole = litellm.stream_chunk_builder(chunks, messages=messages)
    message = whole.choices[0].message
    expect(whole.choices[0].finish_reason == "tool_calls", whole)
    call = message.tool_calls[0]
    expect(call.function.name == "get_weather", call)
    expect(json.loads(call.function.arguments) == CALL_ARGUMENTS, call)
    result = {"role": "tool", "tool_call_id": call.id, "content": "Rain."}
    answer = ask(messages + [message.model_dump(exclude_none=True), result])
    expect(answer.choices[0].finish_reason in ("stop", "length", "tool_calls"), answer)
    expect(answer.usage.prompt_tokens > 0, answer)


run("litellm")
