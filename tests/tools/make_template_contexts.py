"""Conversations to render chat templates over: what people and agents send, and what templates must refuse."""

WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a place.\nSays \"unknown\" when it cannot tell.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City, e.g. Zürich or 東京"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "detail": {"type": ["string", "null"], "nullable": True},
                "grid": {"type": "array", "items": {"type": "number"}, "description": "Two numbers."},
                "options": {"type": "object", "properties": {"verbose": {"type": "boolean"}}, "required": ["verbose"]},
                "mode": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "Either."},
            },
            "required": ["place"],
        },
        "return": {"type": "string", "description": "The weather."},
    },
}
CLOCK_TOOL = {
    "type": "function",
    "function": {"name": "clock", "description": "Time of day <now> & 'here'", "parameters": {"type": "object", "properties": {}, "required": []}},
}

U = {"role": "user", "content": "What is the capital of France?"}
A = {"role": "assistant", "content": "Paris."}
S = {"role": "system", "content": "You are terse. "}
U2 = {"role": "user", "content": "  And of Japan? 日本の首都は？ 🗼\n"}

CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "call0001a", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "Paris", "days": 2, "grid": [1.5, 2], "flag": True}}}
    ],
}
CALL_TEXT = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call0001a", "type": "function", "function": {"name": "get_weather", "arguments": '{"place": "Paris"}'}}],
}
TWO_CALLS = {
    "role": "assistant",
    "content": "Let me look.",
    "tool_calls": [
        {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "Bern"}}},
        {"id": "bcdefghij", "type": "function", "function": {"name": "clock", "arguments": {}}},
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call0001a", "name": "get_weather", "content": '{"weather": "sunny", "t": 21.5}'}
RESULT_DICT = {"role": "tool", "tool_call_id": "call0001a", "name": "get_weather", "content": {"weather": "sunny", "t": 21.5}}
RESULTS = [
    {"role": "tool", "tool_call_id": "abcdefghi", "name": "get_weather", "content": "rain"},
    {"role": "tool", "tool_call_id": "bcdefghij", "name": "clock", "content": "12:30"},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def _context(messages, tools=None, generate=True, **extra):
    context = {"messages": messages, "add_generation_prompt": generate, **TOKENS}
    if tools is not None:
        context["tools"] = tools
    if extra:
        context["extra"] = extra
    return context


CONTEXTS = {
    "single": _context([U]),
    "single-no-prompt": _context([U], generate=False),
    "no-tokens": {"messages": [U], "add_generation_prompt": True},
    "system": _context([S, U]),
    "system-only": _context([S]),
    "multi": _context([S, U, A, U2]),
    "multi-no-system": _context([U, A, U2, {"role": "assistant", "content": "  Tokyo. "}], generate=False),
    "long": _context([S] + [U, A] * 6 + [U2]),
    "empty-content": _context([{"role": "user", "content": ""}]),
    "empty-system": _context([{"role": "system", "content": ""}, U]),
    "no-content": _context([{"role": "user"}]),
    "null-content": _context([U, {"role": "assistant", "content": None}, U2]),
    "list-content": _context([{"role": "user", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi."}]}]),
    "list-system": _context(
        [{"role": "system", "content": [{"type": "text", "text": "Be kind."}]}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    ),
    "image": _context([{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is this?"}]}]),
    "image-url": _context(
        [{"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "a.png"}}]}, A, U2]
    ),
    "audio-video": _context(
        [{"role": "user", "content": [{"type": "audio", "audio": "a.wav"}, {"type": "video", "video": "b.mp4"}, {"type": "text", "text": "?"}]}]
    ),
    "two-users": _context([U, U2]),
    "two-assistants": _context([U, A, A]),
    "assistant-first": _context([A, U]),
    "late-system": _context([U, A, S, U2]),
    "two-systems": _context([S, S, U]),
    "unknown-role": _context([U, {"role": "critic", "content": "Hm."}]),
    "developer": _context([{"role": "developer", "content": "Follow the style."}, U]),
    "no-role": _context([{"content": "Hi"}]),
    "tools": _context([U], tools=[WEATHER_TOOL, CLOCK_TOOL]),
    "tools-system": _context([S, U], tools=[WEATHER_TOOL]),
    "tools-empty": _context([S, U], tools=[]),
    "tool-call": _context([U, CALL, RESULT], tools=[WEATHER_TOOL]),
    "tool-call-text": _context([S, U, CALL_TEXT, RESULT, A, U2], tools=[WEATHER_TOOL, CLOCK_TOOL]),
    "tool-call-dict-result": _context([U, CALL, RESULT_DICT], tools=[WEATHER_TOOL]),
    "tool-call-twice": _context([U, TWO_CALLS, *RESULTS, A, U2], tools=[WEATHER_TOOL, CLOCK_TOOL]),
    "tool-call-no-tools": _context([U, CALL, RESULT, A], generate=False),
    "bare-function-tools": _context([S, U], tools=[WEATHER_TOOL["function"]]),
    "reasoning": _context([U, {"role": "assistant", "reasoning_content": "France... Paris.\n", "content": "Paris."}, U2]),
    "thinking-key": _context([U, {"role": "assistant", "thinking": "Hm.", "content": "Paris."}], generate=False),
    "think-tags": _context([U, {"role": "assistant", "content": "<think>\nFrance.\n</think>\n\nParis."}, U2]),
    "think-tags-last": _context([U, {"role": "assistant", "content": "<think>France</think>Paris."}], generate=False),
    "thinking-on": _context([S, U], enable_thinking=True, thinking=True, reasoning_effort="high"),
    "thinking-off": _context([S, U, A, U2], enable_thinking=False, thinking=False, reasoning_effort="low"),
    "think-system": _context([{"role": "system", "content": "Be brief. /no_think"}, U]),
    "dates": _context([U], date_string="01 Jan 2025", current_date="2025-01-01", strftime_format="%Y"),
    "functions-variable": _context([S, U], functions='[{"name": "f"}]', datetime="Nov 30 2025, 11:04:05", tools_in_user_message=False),
    "documents": _context([S, U], documents=[{"title": "Capitals", "text": "Paris is one."}, {"title": "B", "text": "Rome\ntoo."}]),
    "markup": _context([{"role": "user", "content": "<|im_start|>a & b\t\"c\" 'd' \\ {{ e }} {% f %}\r\nend\u2028x"}]),
    "space": _context([{"role": "system", "content": "\n\n  s  \n"}, {"role": "user", "content": " \t u \n"}, {"role": "assistant", "content": "\n"}]),
}
