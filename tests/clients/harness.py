"""Cases of one client: each prints one line, `passed NAME: CASE` or `failed NAME: CASE: why`."""

import json
import os
import sys
import time
import traceback
import urllib.request

URL = os.environ["DI_SCRIPTED_URL"]  # `serve --scripted --api-key KEY`
KEY = os.environ["DI_API_KEY"]
MODEL = "deepseek-flash"

_cases = []


def case(function):
    _cases.append(function)
    return function


def run(client_name):
    """Runs every case; the exit status says whether all passed."""
    failures = 0
    for function in _cases:
        title = f"{client_name}: {function.__name__.replace('_', ' ')}"
        try:
            function()
            print(f"passed {title}", flush=True)
        except Exception as error:
            failures += 1
            what = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"failed {title}: {what[:400]}", flush=True)
            traceback.print_exc()
    sys.exit(1 if failures else 0)


def expect(condition, *found):
    if not condition:
        raise AssertionError(" ".join(str(f) for f in found) or "unexpected")


def post(path, body):
    """Plain JSON over HTTP, for what is not the client's own."""
    request = urllib.request.Request(
        URL + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def get(path):
    request = urllib.request.Request(URL + path, headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
CALL_ARGUMENTS = {"city": "Zürich \"old\" town", "days": 3}


def forced_ids(messages, answer, **fields):
    """Token ids of an assistant message as the model would say it: the prompt with it, less the
    prompt before it. The model then has no say in what comes."""
    before = post("/render", {"messages": messages, **fields})["tokens"]
    after = post(
        "/render",
        {
            "messages": messages + [{"role": "assistant", **answer}],
            "add_generation_prompt": False,
            **fields,
        },
    )["tokens"]
    expect(after[: len(before)] == before, "the prompt does not begin the prompt with the answer")
    return after[len(before) :]


def forced_call(messages, arguments=None, tools=None, content=""):
    """Ids of an answer with one call of get_weather."""
    call = {
        "id": "call_forced",
        "type": "function",
        "function": {
            "name": "get_weather",
            "arguments": json.dumps(arguments or CALL_ARGUMENTS, ensure_ascii=False),
        },
    }
    return forced_ids(
        messages, {"content": content, "tool_calls": [call]}, tools=tools or [WEATHER]
    )


def wait_until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
