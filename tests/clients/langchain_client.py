"""PyPI langchain-openai: a streamed round trip with a tool."""

from harness import CALL_ARGUMENTS, KEY, MODEL, URL, case, expect, forced_call, run
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI


@tool
def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city"""
    return f"Rain in {city} for {days} days."


@case
def streamed_tool_round_trip():
    question = "What is the weather in Zürich?"
    ids = forced_call(
        [{"role": "user", "content": question}], tools=[convert_to_openai_tool(get_weather)]
    )
    model = ChatOpenAI(
        base_url=URL + "/v1", api_key=KEY, model=MODEL, max_retries=0, timeout=60, max_tokens=200
    ).bind_tools([get_weather])
    whole = None
    for chunk in model.stream(
        [HumanMessage(question)], extra_body={"forced_token_ids": ids}, stream_usage=True
    ):
        whole = chunk if whole is None else whole + chunk
    expect(len(whole.tool_calls) == 1 and not whole.invalid_tool_calls, whole)
    call = whole.tool_calls[0]
    expect((call["name"], call["args"]) == ("get_weather", CALL_ARGUMENTS), call)
    expect(whole.usage_metadata["output_tokens"] > 0, whole)
    result = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
    answer = model.invoke([HumanMessage(question), whole, result])
    expect(answer.response_metadata["finish_reason"] in ("stop", "length", "tool_calls"), answer)


run("langchain-openai")
