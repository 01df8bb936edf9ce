#!/usr/bin/env python3
"""Writes digests.json: what DeepSeek's own encoder makes of conversations.jsonl.

usage: official_digests.py ENCODER_PY [--check]

ENCODER_PY is the official encoder as a Python file, for example ftllm/encoding_dsv41.py of PyPI ftllm 1.9.0; it is
not part of this repository. Every conversation is rendered twice: with the encoder's two fixed texts replaced by
ours (tools/tiny/prompt_texts.json), which is what the tests of a clone can compare with, and with its own.
--check compares with the digests.json that is there instead of writing it.
"""
import copy
import hashlib
import importlib.util
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = HERE.parent.parent / "tools" / "tiny" / "prompt_texts.json"

# What API names mean to the encoder, which knows low, high, max and integers.
EFFORT = {"minimal": "low", "low": "low", "medium": "high", "high": "high", "xhigh": "high", "max": "max",
          "ultra": "max"}


def load_encoder(path):
    spec = importlib.util.spec_from_file_location("official_encoder", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def official_part(part):
    return {"type": "text", "text": part["refusal"]} if part["type"] == "refusal" else part


def official_message(message, calls):
    """One message in the encoder's shape. `calls`: those of the last assistant message."""
    message = copy.deepcopy(message)
    message["role"] = {"developer": "system", "function": "tool"}.get(message["role"], message["role"])
    if message.get("content") is None:
        message["content"] = ""
    if isinstance(message["content"], list):
        message["content"] = [official_part(part) for part in message["content"]]
    if "reasoning" in message:
        message["reasoning_content"] = message.pop("reasoning")
    if "function_call" in message:
        message["tool_calls"] = [{"function": message.pop("function_call")}]
    if message["role"] == "tool" and "name" in message:
        ids = [call.get("id") for call in calls if call["function"]["name"] == message["name"]]
        message["tool_call_id"] = ids[0] or ""
    if message.pop("prefix", False):
        message["wo_eos"] = True
    return message


def official_messages(case):
    messages, calls = [], []
    for message in case["messages"]:
        messages.append(official_message(message, calls))
        calls = messages[-1].get("tool_calls") or calls
    if case.get("continue_final_message"):
        messages[-1]["wo_eos"] = True
    response_format = case.get("response_format", {})
    for_system = {}
    if case.get("tools"):
        for_system["tools"] = case["tools"]
    if response_format.get("type") == "json_schema":
        for_system["response_format"] = response_format["json_schema"]["schema"]
    if for_system and messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": ""})
    messages[0].update(for_system)
    return messages


def official_options(case):
    kwargs = case.get("chat_template_kwargs", {})
    effort = case.get("reasoning_effort", kwargs.get("reasoning_effort"))
    thinking = effort != "none" and kwargs.get("thinking", kwargs.get("enable_thinking", True))
    if case.get("thinking", {}).get("type") == "disabled":
        thinking = False
    return {
        "thinking_mode": "thinking" if thinking else "chat",
        "reasoning_effort": None if effort == "none" else EFFORT.get(effort, effort),
        "drop_thinking": kwargs.get("drop_thinking", True),
    }


def digest(encoder, case):
    prompt, media = encoder.encode_messages(official_messages(case), return_multi_modal_data=True,
                                            **official_options(case))
    data = prompt.encode()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "images": len(media["images"])}


def as_text(tables):
    """JSON with one line a conversation."""
    parts = []
    for title, table in tables.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items()]
        parts.append(f" {json.dumps(title)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    encoder = load_encoder(sys.argv[1])
    with open(HERE / "conversations.jsonl", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    with open(TEXTS, encoding="utf-8") as file:
        texts = json.load(file)
    official = {case["name"]: digest(encoder, case) for case in cases}
    encoder.TOOLS_TEMPLATE = texts["tools_template"]
    encoder.response_format_template = texts["response_format_template"]
    ours = {case["name"]: digest(encoder, case) for case in cases}
    text = as_text({"our_texts": ours, "official_texts": official})
    if sys.argv[2:] == ["--check"]:
        sys.exit(text != (HERE / "digests.json").read_text())
    (HERE / "digests.json").write_text(text)
    print(f"{len(cases)} conversations")


if __name__ == "__main__":
    main()
