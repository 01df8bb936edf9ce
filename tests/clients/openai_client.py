"""PyPI openai against the real server: whatever people do with it."""

import json
import threading

import openai
from harness import (
    CALL_ARGUMENTS,
    KEY,
    MODEL,
    URL,
    WEATHER,
    case,
    expect,
    forced_call,
    forced_ids,
    get,
    post,
    run,
    wait_until,
)
from pydantic import BaseModel
from shapes import check_stream, strangers, validate

# Strict: an answer that is not of OpenAI's shape raises.
client = openai.OpenAI(
    base_url=URL + "/v1", api_key=KEY, max_retries=0, timeout=60, _strict_response_validation=True
)
# For text completions with nulls in places where OpenAI's own API has them and its types do not.
lenient = client.with_options(_extra_kwargs={"_strict_response_validation": False})
HELLO = [{"role": "user", "content": "What is a dog?"}]
CITY = [{"role": "user", "content": "What is the weather in Zürich?"}]


def checked(answer):
    unknown = strangers(answer)
    expect(not unknown, "members beyond OpenAI's shapes:", unknown)
    return answer


def chat(messages=HELLO, **fields):
    fields.setdefault("max_tokens", 32)
    return checked(client.chat.completions.create(model=MODEL, messages=messages, **fields))


def stream(messages=HELLO, **fields):
    fields.setdefault("max_tokens", 32)
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            **fields,
        )
    )
    check_stream(chunks)
    return chunks


def text_of(chunks, index=0):
    deltas = [c.delta.content or "" for k in chunks for c in k.choices if c.index == index]
    return "".join(deltas)


def finish_of(chunks, index=0):
    reasons = [c.finish_reason for k in chunks for c in k.choices if c.index == index]
    return [r for r in reasons if r][0]


def calls_of(chunks):
    """Calls put together from deltas as OpenAI's guide does it."""
    calls = {}
    for chunk in chunks:
        for choice in chunk.choices:
            for delta in choice.delta.tool_calls or []:
                if delta.index not in calls:
                    expect(delta.id and delta.type == "function", "first delta of a call:", delta)
                    expect(delta.function.arguments == "", "first arguments:", delta)
                    calls[delta.index] = {
                        "id": delta.id,
                        "name": delta.function.name,
                        "arguments": "",
                    }
                else:
                    expect(delta.id is None, "a later delta has an id")
                    calls[delta.index]["arguments"] += delta.function.arguments
    return [calls[i] for i in sorted(calls)]


@case
def lists_models():
    models = client.models.list()
    expect(MODEL in [m.id for m in models.data], models)
    for model in models.data:
        checked(model)
        expect(model.object == "model" and model.owned_by, model)
    expect(client.models.retrieve(MODEL).id == MODEL)


@case
def answers_a_chat():
    answer = chat()
    choice = answer.choices[0]
    expect(answer.object == "chat.completion" and answer.model == MODEL, answer)
    expect(choice.message.role == "assistant" and choice.message.content, choice)
    expect(choice.finish_reason in ("stop", "length"), choice.finish_reason)
    usage = answer.usage
    expect(usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage)
    expect(1 <= usage.completion_tokens <= 32, usage)
    expect(isinstance(answer.model_extra["seed"], int), "the seed used is in the answer")


@case
def streams_what_it_answers_whole():
    for seed in (1, 2, 3):
        whole = chat(seed=seed, temperature=1.0)
        chunks = stream(seed=seed, temperature=1.0)
        expect(text_of(chunks) == whole.choices[0].message.content, text_of(chunks), whole)
        expect(finish_of(chunks) == whole.choices[0].finish_reason)
        usage = chunks[-1].usage
        expect(chunks[-1].choices == [] and usage is not None, chunks[-1])
        expect(usage.completion_tokens == whole.usage.completion_tokens, usage, whole.usage)
        expect(all(c.usage is None for c in chunks[:-1]), "usage before the last chunk")
        expect(whole.model_extra["seed"] == seed)
    without = list(
        client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=4, stream=True)
    )
    check_stream(without)
    expect(all(c.usage is None and c.choices for c in without), "usage that nobody asked for")


@case
def the_same_seed_gives_the_same_answer():
    answers = {chat(seed=7, temperature=1.5).choices[0].message.content for _ in range(3)}
    others = {chat(seed=s, temperature=1.5).choices[0].message.content for s in range(20, 26)}
    expect(len(answers) == 1 and len(others) > 1, answers, others)


@case
def thinks_apart_from_the_answer():
    answer = chat(
        messages=[{"role": "user", "content": "Think."}],
        extra_body={
            "thinking": {"type": "enabled"},
            "forced_token_ids": forced_ids(
                [{"role": "user", "content": "Think."}],
                {"reasoning_content": "First this.", "content": "Then that."},
                thinking={"type": "enabled"},
            ),
        },
        max_tokens=200,
    )
    message = answer.choices[0].message
    expect(message.model_extra["reasoning_content"] == "First this.", message)
    expect(message.content == "Then that.", message)
    expect(answer.usage.completion_tokens_details.reasoning_tokens > 0, answer.usage)


@case
def calls_a_tool_and_takes_its_result():
    ids = forced_call(CITY)
    answer = chat(CITY, tools=[WEATHER], max_tokens=200, extra_body={"forced_token_ids": ids})
    choice = answer.choices[0]
    expect(choice.finish_reason == "tool_calls", choice)
    call = choice.message.tool_calls[0]
    expect(call.function.name == "get_weather" and call.type == "function", call)
    expect(json.loads(call.function.arguments) == CALL_ARGUMENTS, call)
    turn = CITY + [
        choice.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "Rain."},
    ]
    expect(chat(turn, tools=[WEATHER]).choices[0].message.role == "assistant")


@case
def streams_a_tool_call():
    ids = forced_call(CITY, content="Let me look.")
    fields = {"tools": [WEATHER], "max_tokens": 200, "extra_body": {"forced_token_ids": ids}}
    chunks = stream(CITY, **fields)
    calls = calls_of(chunks)
    expect(len(calls) == 1 and calls[0]["name"] == "get_weather", calls)
    expect(json.loads(calls[0]["arguments"]) == CALL_ARGUMENTS, calls)
    expect(finish_of(chunks) == "tool_calls", finish_of(chunks))
    expect(text_of(chunks) == "Let me look.", text_of(chunks))
    whole = chat(CITY, **fields).choices[0].message
    expect(whole.tool_calls[0].function.arguments == calls[0]["arguments"], whole, calls)
    expect(whole.content == "Let me look.", whole)


@case
def streams_through_the_clients_own_helper():
    ids = forced_call(CITY)
    with client.chat.completions.stream(
        model=MODEL,
        messages=CITY,
        tools=[{**WEATHER, "function": {**WEATHER["function"], "strict": True}}],
        max_tokens=200,
        extra_body={"forced_token_ids": ids},
    ) as events:
        kinds = {event.type for event in events}
        final = events.get_final_completion()
    expect("tool_calls.function.arguments.done" in kinds, kinds)
    arguments = final.choices[0].message.tool_calls[0].function.parsed_arguments
    expect(arguments == CALL_ARGUMENTS, arguments)


@case
def obeys_tool_choice():
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        answer = chat(CITY, tools=[WEATHER], tool_choice=choice, max_tokens=400, temperature=0)
        message = answer.choices[0].message
        expect(answer.choices[0].finish_reason == "tool_calls", choice, answer)
        expect(message.content is None, message)
        arguments = json.loads(message.tool_calls[0].function.arguments)
        expect(isinstance(arguments["city"], str), arguments)
    answer = chat(CITY, tools=[WEATHER], tool_choice="none", max_tokens=64)
    expect(not answer.choices[0].message.tool_calls, answer)


@case
def makes_one_call_when_asked_for_one():
    answer = chat(
        CITY,
        tools=[WEATHER],
        tool_choice="required",
        parallel_tool_calls=False,
        max_tokens=400,
        temperature=1.0,
        seed=5,
    )
    expect(len(answer.choices[0].message.tool_calls) == 1, answer)


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


@case
def answers_with_a_schema():
    answer = client.chat.completions.parse(
        model=MODEL,
        messages=[{"role": "user", "content": "A person, please."}],
        response_format=Person,
        max_tokens=400,
        temperature=1.0,
        seed=3,
        extra_body={"frequency_penalty": 1.0},
    )
    if answer.choices[0].finish_reason == "stop":
        expect(isinstance(answer.choices[0].message.parsed, Person), answer)
    chunks = stream(
        [{"role": "user", "content": "A number."}],
        response_format={
            "type": "json_schema",
            "json_schema": {
                "name": "n",
                "strict": True,
                "schema": {
                    "type": "object",
                    "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 7}},
                    "required": ["n"],
                    "additionalProperties": False,
                },
            },
        },
        temperature=1.0,
        max_tokens=64,
    )
    expect(3 <= json.loads(text_of(chunks))["n"] <= 7, text_of(chunks))
    expect(finish_of(chunks) == "stop")


@case
def answers_with_a_json_object():
    answer = chat(
        [{"role": "user", "content": "JSON please."}],
        response_format={"type": "json_object"},
        max_tokens=600,
        temperature=0,
    )
    if answer.choices[0].finish_reason == "stop":
        expect(isinstance(json.loads(answer.choices[0].message.content), dict), answer)
    else:
        expect(answer.choices[0].message.content.lstrip().startswith("{"), answer)


@case
def obeys_a_regular_expression():
    answer = chat(extra_body={"guided_regex": "(yes|no), [0-9]{3}"}, max_tokens=40)
    text = answer.choices[0].message.content
    expect(text.split(", ")[0] in ("yes", "no") and len(text.split(", ")[1]) == 3, text)


def error_of(kind, function):
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}")


@case
def names_what_is_wrong():
    bad = openai.BadRequestError
    error = error_of(bad, lambda: chat(temperature=9))
    expect(error.param == "temperature" and error.type == "invalid_request_error", error.body)
    error = error_of(bad, lambda: chat([{"role": "wizard", "content": "x"}]))
    expect("messages[0].role" in str(error), error.body)
    error = error_of(bad, lambda: chat([{"role": "user", "content": "dog " * 20000}]))
    expect(error.code == "context_length_exceeded", error.body)
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    format_ = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    error = error_of(bad, lambda: chat(response_format=format_))
    expect(error.code == "unsupported_schema" and "uniqueItems" in str(error), error.body)
    error = error_of(
        openai.NotFoundError,
        lambda: client.chat.completions.create(model="gpt-9", messages=HELLO),
    )
    expect(error.code == "model_not_found" and MODEL in str(error), error.body)
    error_of(openai.NotFoundError, lambda: client.models.retrieve("gpt-9"))
    error_of(openai.NotFoundError, lambda: client.embeddings.create(model=MODEL, input="x"))
    locked = openai.OpenAI(base_url=URL + "/v1", api_key="wrong", max_retries=0)
    error = error_of(openai.AuthenticationError, lambda: locked.models.list())
    expect(error.code == "invalid_api_key", error.body)
    expect(error.request_id, "no x-request-id on an error")


@case
def a_client_that_leaves_frees_its_place():
    def running():
        stats = json.loads(get("/stats"))
        return stats["running"] + stats["waiting"]

    expect(wait_until(lambda: running() == 0), "something runs before the test")
    chunks = client.chat.completions.create(
        model=MODEL,
        messages=HELLO,
        stream=True,
        max_tokens=6000,
        extra_body={"ignore_eos": True},
    )
    next(iter(chunks))
    expect(wait_until(lambda: running() == 1), "the request does not show in /stats")
    chunks.close()
    expect(wait_until(lambda: running() == 0, 2), "runs on after its client has left")


@case
def counts_what_the_cache_had():
    prompt = [{"role": "user", "content": "Tell me about these words: " + "river stone " * 120}]
    first = chat(prompt, max_tokens=2, extra_body={"cache_salt": "counts"}).usage
    again = chat(prompt, max_tokens=2, extra_body={"cache_salt": "counts"}).usage
    other = chat(prompt, max_tokens=2, extra_body={"cache_salt": "elsewhere"}).usage
    expect(first.prompt_tokens_details.cached_tokens == 0, first)
    hit = (again.prompt_tokens - 1) // 64 * 64
    expect(again.prompt_tokens_details.cached_tokens == hit > 0, again)
    expect(other.prompt_tokens_details.cached_tokens == 0, other)
    extra = again.model_extra
    hits, misses = extra["prompt_cache_hit_tokens"], extra["prompt_cache_miss_tokens"]
    expect((hits, hits + misses) == (hit, again.prompt_tokens), extra)


def complete(**fields):
    return checked(client.completions.create(model=MODEL, **fields))


@case
def completes_text_and_ids():
    answer = complete(prompt="A dog is", max_tokens=8)
    expect(answer.object == "text_completion" and answer.choices[0].text, answer)
    ids = post("/tokenize", {"prompt": "A dog is"})["tokens"]
    by_ids = complete(prompt=ids, max_tokens=8, temperature=0)
    by_text = complete(prompt="A dog is", max_tokens=8, temperature=0)
    expect(by_ids.choices[0].text == by_text.choices[0].text, by_ids, by_text)
    expect(by_ids.usage.prompt_tokens == len(ids), by_ids.usage)
    many = complete(prompt=["A dog is", "A cat is"], n=2, max_tokens=3)
    expect([c.index for c in many.choices] == [0, 1, 2, 3], many)
    chunks = list(
        lenient.completions.create(
            model=MODEL, prompt="A dog is", max_tokens=8, temperature=0, stream=True
        )
    )
    for chunk in chunks:
        error = validate("completion", chunk.model_dump(exclude_unset=True))
        expect(error is None, error)
    expect("".join(k.choices[0].text for k in chunks if k.choices) == by_text.choices[0].text)


@case
def scores_a_prompt():
    answer = lenient.completions.create(
        model=MODEL, prompt="A dog is", max_tokens=0, echo=True, logprobs=2
    )
    error = validate("completion", answer.model_dump(exclude_unset=True))
    expect(error is None, error)
    logprobs = answer.choices[0].logprobs
    expect("".join(logprobs.tokens).endswith("A dog is"), logprobs.tokens)
    expect(answer.choices[0].text.endswith("A dog is"), answer)
    expect(logprobs.token_logprobs[0] is None, logprobs)
    expect(all(p <= 0 for p in logprobs.token_logprobs[1:]), logprobs)
    expect(len(logprobs.text_offset) == len(logprobs.tokens), logprobs)


@case
def gives_log_probabilities():
    answer = chat(logprobs=True, top_logprobs=3, max_tokens=5, temperature=0)
    content = answer.choices[0].logprobs.content
    expect(len(content) == answer.usage.completion_tokens or
           len(content) == answer.usage.completion_tokens - 1, content)
    for entry in content:
        expect(len(entry.top_logprobs) == 3 and entry.logprob <= 0, entry)
        expect(entry.token == entry.top_logprobs[0].token, "not the likeliest at temperature 0")
    shown = b"".join(bytes(e.bytes) for e in content).decode("utf-8", "replace")
    expect(shown.startswith(answer.choices[0].message.content), shown, answer)
    chunks = stream(logprobs=True, top_logprobs=3, max_tokens=5, temperature=0)
    streamed = [e for k in chunks for c in k.choices if c.logprobs for e in c.logprobs.content]
    expect([e.token for e in streamed] == [e.token for e in content], streamed, content)


@case
def gives_several_choices():
    answer = chat(n=3, seed=11, temperature=1.0, max_tokens=12)
    expect([c.index for c in answer.choices] == [0, 1, 2], answer)
    chunks = stream(n=3, seed=11, temperature=1.0, max_tokens=12)
    for choice in answer.choices:
        expect(text_of(chunks, choice.index) == choice.message.content, choice)
    alone = chat(seed=12, temperature=1.0, max_tokens=12)
    expect(alone.choices[0].message.content == answer.choices[1].message.content)


@case
def stops_where_it_should():
    forced = post("/tokenize", {"prompt": "one two three", "add_special_tokens": False})["tokens"]
    fields = {"extra_body": {"forced_token_ids": forced}, "max_tokens": 50}
    answer = chat(stop=["two"], **fields).choices[0]
    expect((answer.message.content, answer.finish_reason) == ("one ", "stop"), answer)
    expect(text_of(stream(stop=[" thr"], **fields)) == "one two")
    answer = chat(extra_body={"ignore_eos": True}, max_tokens=9)
    expect(answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 9)


@case
def serves_many_clients_at_once():
    alone = chat(temperature=0, max_tokens=16).choices[0].message.content
    answers = [None] * 12

    def ask(i):
        answers[i] = text_of(stream(temperature=0, max_tokens=16))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(answers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(set(answers) == {alone}, answers, alone)


@case
def takes_what_clients_send():
    answer = chat(
        [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}], "name": "ann"},
            {"role": "assistant", "content": None, "refusal": "no"},
            {"role": "user", "content": "Again"},
        ],
        user="ann",
        metadata={"a": "b"},
        store=False,
        service_tier="auto",
        max_completion_tokens=4,
        max_tokens=openai.NOT_GIVEN,
        presence_penalty=0.1,
        logit_bias={"5": -100},
        top_p=0.9,
    )
    expect(answer.usage.completion_tokens <= 4, answer.usage)


run("openai-python")
