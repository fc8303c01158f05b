"""Faults in reading what single vendors send, and in sending back what they want back."""

from tests.mutants import Fault

_STREAM = "tests/agent/models/test_vendor_streams.py::test_the_stream_of_a_vendor"

FAULTS = (
    Fault(
        "vendor_streams/details-of-openrouter-are-lost",
        "_assistant",
        "return block | _details(thinking) if thinking else block",
        "return block",
        (f"{_STREAM}[openrouter-7]",),
    ),
    Fault(
        "vendor_streams/details-go-to-any-model",
        "_assistant",
        "return block | _details(thinking) if thinking else block",
        "return block | _details([part for part in parts if isinstance(part, Thinking)])",
        (f"{_STREAM}[openrouter-7]",),
    ),
    Fault(
        "vendor_streams/deepseek-misses-its-reasoning",
        "wants_reasoning",
        "return _of(spec.base_url).reasoning",
        "return False",
        (f"{_STREAM}[deepseek-7]",),
    ),
    Fault(
        "vendor_streams/signatures-of-gemini-are-lost",
        "_call",
        "if part.call_id in extras:",
        "if False:",
        (f"{_STREAM}[gemini-7]",),
    ),
    Fault(
        "vendor_streams/usage-of-groq-is-lost",
        "ChunkReader.feed",
        ' or ("x_groq" in chunk and record(chunk["x_groq"]).get("usage"))',
        "",
        (f"{_STREAM}[groq-7]",),
    ),
)
