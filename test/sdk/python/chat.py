"""The openai package for Python against the running server: OPENAI_BASE_URL and OPENAI_API_KEY say where and who."""

import openai

client = openai.OpenAI(max_retries=0)


def check(what, holds):
    if not holds:
        raise SystemExit(f"NO: {what}")
    print(f"yes: {what}")


def say(content, **more):
    return client.chat.completions.create(model="built-in", messages=[{"role": "user", "content": content}], **more)


check("a completion comes back", say("Say exactly: hello from Python").choices[0].message.content == "hello from Python")

stream = say("Say exactly: one two three", stream=True, stream_options={"include_usage": True})
pieces, usage = [], None
for chunk in stream:
    pieces += [choice.delta.content or "" for choice in chunk.choices]
    usage = chunk.usage or usage
check("a stream says the same in pieces", "".join(pieces) == "one two three" and usage.total_tokens > 0)

tools = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
            "strict": True,
        },
    }
]
call = say("Use get_weather for city: Oslo", tools=tools).choices[0].message.tool_calls[0]
check("a tool is called with its arguments", (call.function.name, call.function.arguments.replace(" ", "")) == ("get_weather", '{"city":"Oslo"}'))

schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
answer = say("city: Paris", response_format={"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": schema}})
check("JSON conforms to its schema", '"Paris"' in answer.choices[0].message.content)

check("the models are listed", "built-in" in [model.id for model in client.models.list()])

try:
    openai.OpenAI(api_key="x" * 64, max_retries=0).models.list()
    check("a wrong key is refused", False)
except openai.AuthenticationError as error:
    check("a wrong key is refused", error.code == "invalid_api_key")

try:
    say("hello", temperature=3)
    check("a temperature of 3 is refused", False)
except openai.BadRequestError as error:
    check("a temperature of 3 is refused", error.param == "temperature")
