"""What OpenAI's own types say of our answers, and which members of ours go beyond them.

As a program: validates the answers that tests/clients/openai_client.mjs recorded, one JSON object
{"kind": ..., "body": ...} a line.
"""

import json
import sys

from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

# Members that OpenAI's types do not know, by the type in which they may stand. docs/api.md lists
# them for users.
EXTENSIONS = {
    "ChatCompletion": {"seed", "prompt_logprobs", "prompt_token_ids"},
    "ChatCompletionChunk": {"seed", "prompt_logprobs", "prompt_token_ids"},
    "Completion": {"seed"},
    "ChatCompletionMessage": {"reasoning_content"},
    "ChoiceDelta": {"reasoning_content"},
    "Choice": {"stop_reason", "token_ids"},
    "CompletionChoice": {"stop_reason", "token_ids", "prompt_logprobs", "prompt_token_ids"},
    "ChoiceLogprobs": {"reasoning_content"},
    "CompletionUsage": {"prompt_cache_hit_tokens", "prompt_cache_miss_tokens"},
    "Model": {"max_model_len", "root", "parent"},
}

KINDS = {
    "chat": ChatCompletion,
    "chunk": ChatCompletionChunk,
    "completion": Completion,
    "model": Model,
}


def strangers(value, path="$"):
    """Members that neither OpenAI's types nor our list know."""
    found = []
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += strangers(item, f"{path}[{i}]")
    if isinstance(value, BaseModel):
        allowed = EXTENSIONS.get(type(value).__name__, set())
        found += [f"{path}.{name}" for name in (value.model_extra or {}) if name not in allowed]
        for name in type(value).model_fields:
            found += strangers(getattr(value, name, None), f"{path}.{name}")
    return found


def without_nulls(body):
    """OpenAI's own API sends null where its types for text completions say it never does: the
    finish_reason of a stream that goes on, the log-probability of an echoed first token."""
    for choice in body.get("choices", []):
        if choice.get("finish_reason") is None:
            choice["finish_reason"] = "stop"
        logprobs = choice.get("logprobs") or {}
        for name, nothing in (("token_logprobs", 0.0), ("top_logprobs", {})):
            values = logprobs.get(name)
            if values:
                logprobs[name] = [nothing if value is None else value for value in values]
    return body


def validate(kind, body):
    """An error text, or None."""
    text = json.dumps(without_nulls(body) if kind == "completion" else body)
    try:
        value = KINDS[kind].model_validate_json(text)
    except Exception as error:
        return f"{kind}: {' '.join(str(error).split())[:300]} in {text[:300]}"
    unknown = strangers(value)
    return f"{kind}: members beyond OpenAI's shapes: {unknown}" if unknown else None


def check_stream(chunks):
    """What holds of a chat's chunks together. Raises AssertionError."""
    for name in ("id", "created", "model", "object"):
        values = {getattr(chunk, name) for chunk in chunks}
        assert len(values) == 1, f"{name} changes within a stream: {values}"
    finished = set()
    started = set()
    for chunk in chunks:
        unknown = strangers(chunk)
        assert not unknown, f"members beyond OpenAI's shapes: {unknown}"
        for choice in chunk.choices:
            assert choice.index not in finished, "a choice goes on after its finish_reason"
            if choice.index not in started:
                assert choice.delta.role == "assistant", "the first delta has no role"
                started.add(choice.index)
            if choice.finish_reason is not None:
                finished.add(choice.index)
    assert finished == started and finished, f"choices {started}, finished {finished}"


def main(path):
    counts, failures = {}, 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            counts[record["kind"]] = counts.get(record["kind"], 0) + 1
            error = validate(record["kind"], record["body"])
            if error and failures < 5:
                print(f"failed openai-node: shapes: {error}")
            failures += error is not None
    total = sum(counts.values())
    if total < 100 or set(counts) != set(KINDS):
        failures += 1
        print(f"failed openai-node: shapes: expected answers of every kind, found {counts}")
    if failures == 0:
        print(f"passed openai-node: {total} answers have OpenAI's shapes")
    return failures


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
