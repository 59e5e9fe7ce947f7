"""The google-genai package against the running server: DRAGOMAN_URL and DRAGOMAN_KEY say where and who."""

import json
import os
import urllib.request

from google import genai
from google.genai import errors, types

url, key = os.environ["DRAGOMAN_URL"], os.environ["DRAGOMAN_KEY"]


def check(what, holds):
    if not holds:
        raise SystemExit(f"NO: {what}")
    print(f"yes: {what}")


clients = []


def client_of(api_key=key, headers=None, **more):
    client = genai.Client(api_key=api_key, http_options=types.HttpOptions(base_url=f"{url}/server/gencompat", headers=headers, **more))
    clients.append(client)  # one that nobody holds any more closes its connections, also under a stream
    return client


client = client_of()
models = client.models

answer = models.generate_content(model="flash", contents="Say exactly: hello from Python")
check("content is generated", answer.text == "hello from Python" and answer.model_version)
check("the usage adds up", answer.usage_metadata.total_token_count == answer.usage_metadata.prompt_token_count + answer.usage_metadata.candidates_token_count)

for version in ("v1", "v1beta"):
    pieces = list(client_of(api_version=version).models.generate_content_stream(model="gemini-2.5-flash", contents="Say exactly: one two three"))
    check(f"a stream says the same in pieces, at {version}", "".join(piece.text or "" for piece in pieces) == "one two three" and len(pieces) > 1)

check("the key may stand in x-access-tokens", client_of("unused", {"x-access-tokens": key}).models.generate_content(model="pro", contents="Say exactly: yes").text == "yes")

for name in ("models/gemini-2.5-flash", "publishers/google/models/gemini-2.5-flash", "gemini-2.5-pro-preview-05-06"):
    check(f"{name} is answered", models.generate_content(model=name, contents="Say exactly: yes").text == "yes")

config = types.GenerateContentConfig(
    system_instruction="be brief",
    temperature=0.2,
    top_k=20,
    top_p=0.9,
    max_output_tokens=2,
    candidate_count=2,
    safety_settings=[types.SafetySetting(category="HARM_CATEGORY_HATE_SPEECH", threshold="BLOCK_NONE")],
)
answer = models.generate_content(model="flash", contents="Say exactly: one two three four", config=config)
check("a configuration is honoured", [one.finish_reason for one in answer.candidates] == [types.FinishReason.MAX_TOKENS] * 2)

picture = types.Part.from_bytes(data=b"\x89PNG\r\n\x1a\n", mime_type="image/png")
check("a picture goes along", "PNG image, 8 bytes" in models.generate_content(model="flash", contents=["What is this?", picture]).text)

chat = client.chats.create(model="flash")
chat.send_message("Say exactly: one")
said = "".join(piece.text or "" for piece in chat.send_message_stream("Say exactly: two words"))
check("a chat goes on, and its history is whole", said == "two words" and [one.role for one in chat.get_history()].count("user") == 2)

asked = []


def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: its name.
    """
    asked.append(city)
    return f"sunny as ever in {city}"


answer = client.chats.create(model="flash", config={"tools": [get_weather]}).send_message("get_weather for city: Oslo")
check("a function is called by itself until there is an answer", asked == ["Oslo"] and "sunny as ever in Oslo" in answer.text)


def broken(city: str) -> str:
    """Fails."""
    raise ValueError("out of order")


answer = client.chats.create(model="flash", config={"tools": [broken]}).send_message("broken for city: Oslo")
check("what a function raises is read as its answer", "out of order" in answer.text)

declared = types.FunctionDeclaration(
    name="look", parameters=types.Schema(type="OBJECT", properties={"at": types.Schema(type="STRING")}, required=["at"])
)
must = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY", allowed_function_names=["look"]))
answer = models.generate_content(
    model="flash", contents="look at: sky", config=types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])], tool_config=must)
)
check("a declared function is called with its arguments", [(one.name, one.args) for one in answer.function_calls] == [("look", {"at": "sky"})])

schema = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}, "required": ["city", "n"], "additionalProperties": False}
for kind, given in {"response_json_schema": schema, "response_schema": types.Schema.from_json_schema(json_schema=types.JSONSchema.model_validate(schema))}.items():
    answer = models.generate_content(model="flash", contents="city: Paris, n: 3", config={"response_mime_type": "application/json", kind: given})
    check(f"JSON conforms to its {kind}", json.loads(answer.text) == {"city": "Paris", "n": 3})

check("tokens are counted", models.count_tokens(model="flash", contents="hi " * 100).total_tokens > 50)
check("the models are listed", "models/built-in" in [model.name for model in models.list()])
check("one model is found", models.get(model="built-in").name == "models/built-in")

few = models.embed_content(model="text-embedding-004", contents="How old are you?").embeddings
check("a text has a vector", len(few) == 1 and len(few[0].values) == 512)
config = types.EmbedContentConfig(task_type="RETRIEVAL_DOCUMENT", title="t", output_dimensionality=8)
many = models.embed_content(model="built-in-embedding", contents=["one", "two", "three"], config=config).embeddings
check("several texts have vectors of the length that was asked for", [len(one.values) for one in many] == [8, 8, 8])
texts = [f"text {at}" for at in range(257)]
check("256 texts are taken", len(models.embed_content(model="built-in-embedding", contents=texts[:256], config={"output_dimensionality": 2}).embeddings) == 256)
for what, contents in {"257 texts are refused": texts, "an empty text is refused": [""]}.items():
    try:
        models.embed_content(model="built-in-embedding", contents=contents)
        check(what, False)
    except errors.ClientError as error:
        check(what, (error.code, error.status) == (400, "INVALID_ARGUMENT"))

mixed = {
    "contents": [{"parts": [{"text": "Say exactly: one two three"}]}],
    "generation_config": {"maxOutputTokens": 2},
    "system_instruction": {"parts": [{"text": "be brief"}]},
    "safetySettings": [],
}
request = urllib.request.Request(
    f"{url}/server/gencompat/v1beta/models/flash:generateContent",
    data=json.dumps(mixed).encode(),
    headers={"x-goog-api-key": key, "content-type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    check("both spellings may stand in one request", json.load(response)["candidates"][0]["finishReason"] == "MAX_TOKENS")

for what, wrong, model, config, expected in [
    ("a wrong key is refused", client_of("x" * 64), "flash", None, (401, "UNAUTHENTICATED")),
    ("an unknown model is refused", client, "gpt-nobody", None, (404, "NOT_FOUND")),
    ("a temperature of 3 is refused", client, "flash", {"temperature": 3}, (400, "INVALID_ARGUMENT")),
]:
    for ask in (wrong.models.generate_content, lambda **more: list(wrong.models.generate_content_stream(**more))):
        try:
            ask(model=model, contents="hi", config=config)
            check(what, False)
        except errors.ClientError as error:
            check(what, (error.code, error.status) == expected)

root = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url))
check("the address of the server is enough", root.models.generate_content(model="flash", contents="Say exactly: yes").text == "yes")
for what, ask in {"files": lambda: list(root.files.list()), "caches": lambda: list(root.caches.list())}.items():
    try:
        ask()
        check(f"{what} are refused", False)
    except errors.ClientError as error:
        check(f"{what} are refused in the shape of the package", (error.code, error.status) == (404, "NOT_FOUND"))
