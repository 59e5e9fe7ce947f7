"""The openai package for Python against the running server: OPENAI_BASE_URL and OPENAI_API_KEY say where and who."""

import asyncio
import base64
import struct

import openai
import pydantic

client = openai.OpenAI(max_retries=0)


def check(what, holds):
    if not holds:
        raise SystemExit(f"NO: {what}")
    print(f"yes: {what}")


def openai_floats(vectors):
    """Of base64, which the package decodes only where its caller names no encoding."""
    return [struct.unpack(f"<{len(base64.b64decode(one)) // 4}f", base64.b64decode(one)) if isinstance(one, str) else one for one in vectors]


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

class Place(pydantic.BaseModel):
    city: str
    n: int


asked = [{"role": "user", "content": "city: Paris, n: 3"}]
paris = Place(city="Paris", n=3)
check("an answer is parsed", client.chat.completions.parse(model="built-in", messages=asked, response_format=Place).choices[0].message.parsed == paris)
with client.chat.completions.stream(model="built-in", messages=asked, response_format=Place) as stream:
    check("a stream is parsed", stream.get_final_completion().choices[0].message.parsed == paris)
check("a response is parsed", client.responses.parse(model="built-in", input="city: Paris, n: 3", text_format=Place).output_parsed == paris)
with client.responses.stream(model="built-in", input="Say exactly: one two") as stream:
    kinds = [event.type for event in stream]
    response = stream.get_final_response()
check("a response is streamed", (kinds[0], kinds[-1], response.output_text) == ("response.created", "response.completed", "one two"))
following = client.responses.create(model="built-in", previous_response_id=response.id, input="Say exactly: three")
check("a response goes on from another", [item.type for item in client.responses.input_items.list(following.id)].count("message") >= 1)


async def at_once():
    async with openai.AsyncOpenAI(max_retries=0) as many:
        questions = [[{"role": "user", "content": f"Say exactly: {number}"}] for number in range(10)]
        return await asyncio.gather(*(many.chat.completions.create(model="built-in", messages=one) for one in questions))


check("ten are asked at once", [one.choices[0].message.content for one in asyncio.run(at_once())] == [str(number) for number in range(10)])

vectors = {encoding: client.embeddings.create(model="built-in-embedding", input=["a", "b"], dimensions=8, encoding_format=encoding) for encoding in ("float", "base64")}
numbers = {encoding: [item.embedding for item in found.data] for encoding, found in vectors.items()}
near = [abs(a - b) < 1e-6 for one, other in zip(numbers["float"], openai_floats(numbers["base64"])) for a, b in zip(one, other)]
check("vectors are the same in both encodings", near == [True] * 16 and vectors["float"].usage.total_tokens > 0)

sound = client.audio.speech.create(model="built-in-speech", voice="alloy", input="Good morning.")
check("a text is spoken", sound.content[:4] == b"RIFF")

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
