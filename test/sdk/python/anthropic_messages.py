"""The anthropic package against the running server: DRAGOMAN_URL and DRAGOMAN_KEY say where and who."""

import os

import anthropic

url, key = os.environ["DRAGOMAN_URL"], os.environ["DRAGOMAN_KEY"]


def check(what, holds):
    if not holds:
        raise SystemExit(f"NO: {what}")
    print(f"yes: {what}")


def client_of(api_key=key, **more):
    return anthropic.Anthropic(api_key=api_key, base_url=f"{url}/server/messages", max_retries=0, **more)


client = client_of()


def question(content, **more):
    return {"model": "built-in", "max_tokens": 200, "messages": [{"role": "user", "content": content}], **more}


message = client.messages.create(**question("Say exactly: hello from Python", system="be brief"))
check("a message comes back", (message.content[0].text, message.stop_reason, message.role) == ("hello from Python", "end_turn", "assistant"))
check("its usage is told", message.usage.input_tokens > 0 and message.usage.output_tokens > 0)
check("it stops at its limit", client.messages.create(**question("Say exactly: one two three", max_tokens=2)).stop_reason == "max_tokens")

with client.messages.stream(**question("Say exactly: one two three")) as stream:
    said = "".join(stream.text_stream)
    final = stream.get_final_message()
check("a stream says the same in pieces", said == "one two three" and final.content[0].text == said and final.usage.output_tokens > 0)

kinds = [event.type for event in client.messages.create(**question("Say exactly: hello", stream=True))]
check("its events come in order", (kinds[0], kinds[1], kinds[-3:]) == ("message_start", "content_block_start", ["content_block_stop", "message_delta", "message_stop"]))

weather = {
    "name": "get_weather",
    "description": "The weather in a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
asked = question("Use get_weather for city: Oslo", tools=[weather])
first = client.messages.create(**asked)
use = first.content[-1]
check("a tool is used with its input", (first.stop_reason, use.type, use.name, use.input) == ("tool_use", "tool_use", "get_weather", {"city": "Oslo"}))
with client.messages.stream(**asked) as stream:
    check("a stream uses it alike", stream.get_final_message().content[-1].input == {"city": "Oslo"})
asked["messages"] += [
    {"role": "assistant", "content": first.content},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny as ever"}]},
]
check("its result is read", "sunny as ever" in client.messages.create(**asked).content[0].text)
forced = client.messages.create(**question("What is the weather?", tools=[weather], tool_choice={"type": "tool", "name": "get_weather"}))
check("it must be used where the request says so", forced.content[-1].name == "get_weather")

counted = client.messages.count_tokens(model="built-in", messages=[{"role": "user", "content": "hi " * 100}])
check("tokens are counted", counted.input_tokens > 50)
check("the models are listed", "built-in" in [model.id for model in client.models.list()])
check("the key may be a bearer token", anthropic.Anthropic(auth_token=key, base_url=f"{url}/server/messages").messages.create(**question("Say exactly: yes")).content[0].text == "yes")

calls = []


@anthropic.beta_tool
def look_up(city: str) -> str:
    """The weather in a city.

    Args:
        city: its name
    """
    calls.append(city)
    return f"sunny as ever in {city}"


root = anthropic.Anthropic(api_key=key, base_url=url, max_retries=0)
runner = root.beta.messages.tool_runner(**question("look_up for city: Oslo", tools=[look_up]))
check("a tool is called until there is an answer", "sunny as ever in Oslo" in runner.until_done().content[0].text and calls == ["Oslo"])

for what, kind, ask in [
    ("a wrong key is refused", anthropic.AuthenticationError, lambda: client_of("x" * 64).messages.create(**question("hi"))),
    ("an unknown model is refused", anthropic.NotFoundError, lambda: client.messages.create(**question("hi", model="gpt-nobody"))),
    ("a temperature of 3 is refused", anthropic.BadRequestError, lambda: client.messages.create(**question("hi", extra_body={"temperature": 3}))),
    ("a conversation without messages is refused", anthropic.BadRequestError, lambda: client.messages.create(model="built-in", max_tokens=9, messages=[])),
    ("what is not there is refused in the shape of the package", anthropic.NotFoundError, lambda: root.beta.files.list()),
    ("a stream that may not begin is refused", anthropic.NotFoundError, lambda: list(client.messages.create(**question("hi", model="gpt-nobody", stream=True)))),
]:
    try:
        ask()
        check(what, False)
    except kind as error:
        check(what, error.body["type"] == "error" and error.body["error"]["message"])
